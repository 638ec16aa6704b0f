// A page opened from disk may start no worker, and the search is one: there it runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      // The frame's own postMessage is the worker's answer, so questions reach it as events.
      window.addEventListener("message", ({ source, data }) => {
        if (source === frame.contentWindow) this.dispatchEvent(new MessageEvent("message", { data }));
      });
      frame.srcdoc =
        "<script>window.postMessage = (data) => window.parent.postMessage(data, '*')<\/script>" +
        `<script src="${url}"><\/script>`;
      this.ready = new Promise((resolve) => frame.addEventListener("load", resolve));
      this.frame = frame;
      document.body.append(frame);
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
