// Words to and from Python: one socket (or a notebook's comm) that both look like `model` here.

const PAD = 8;

function packed(content, buffers) {
  const parts = buffers.map((one) => new Uint8Array(one.buffer ?? one, one.byteOffset ?? 0, one.byteLength));
  let header = new TextEncoder().encode(JSON.stringify({ ...content, _b: parts.map((one) => one.length) }));
  const padded = header.length + ((PAD - ((header.length + 4) % PAD)) % PAD);
  let size = 4 + padded;
  for (const part of parts) size += part.length + ((PAD - (part.length % PAD)) % PAD);
  const frame = new Uint8Array(size).fill(32, 4, 4 + padded);
  new DataView(frame.buffer).setUint32(0, padded, true);
  frame.set(header, 4);
  let place = 4 + padded;
  for (const part of parts) {
    frame.set(part, place);
    place += part.length + ((PAD - (part.length % PAD)) % PAD);
  }
  return frame;
}

function unpacked(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const content = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const buffers = [];
  let place = 4 + length;
  for (const size of content._b) {
    buffers.push(new DataView(buffer, place, size));
    place += size + ((PAD - (size % PAD)) % PAD);
  }
  delete content._b;
  return [content, buffers];
}

// A socket that looks like a widget's model, and comes back by itself when it drops.
export class SocketModel {
  // address(path): where the socket of a path is. What lies below the pointer has one of its own, and does not wait
  // behind a view of many rows.
  constructor(address) {
    this.address = address;
    this.pointer = null;
    this.listeners = { "msg:custom": [], up: [], down: [] };
    this.wait = 250;
    this.connect();
  }
  connect() {
    const socket = new WebSocket(this.address("talk"));
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      this.socket = socket;
      this.wait = 250;
      this.emit("up");
    };
    socket.onmessage = (event) => this.emit("msg:custom", ...unpacked(event.data));
    socket.onclose = () => {
      const was = this.socket === socket;
      this.socket = null;
      if (was || this.wait === 250) this.emit("down");
      setTimeout(() => this.connect(), this.wait);
      this.wait = Math.min(4000, this.wait * 2);
    };
  }
  on(event, f) {
    this.listeners[event]?.push(f);
  }
  emit(event, ...values) {
    for (const f of this.listeners[event]) f(...values);
  }
  besides() {
    this.pointer?.close();
    this.pointer = new WebSocket(this.address("hover"));
    this.pointer.binaryType = "arraybuffer";
    this.pointer.onmessage = (event) => this.emit("msg:custom", ...unpacked(event.data));
  }
  send(content, _callbacks, buffers = []) {
    if (content.type === "hover" && this.pointer?.readyState === 1) this.pointer.send(packed(content, buffers));
    else if (this.socket?.readyState === 1) this.socket.send(packed(content, buffers));
  }
}

// Questions with answers, and news by their type. All that was asked is counted, and all of it that is done: answered,
// and where the answer began some work, after its end. Who waits for the two numbers to agree sees all that came of it.
export class Link {
  constructor(model) {
    this.model = model;
    this.open = new Map();
    this.works = [];
    this.heard = new Map();
    this.asked = this.done = this.ended = 0;
    model.on("msg:custom", (content, buffers) => this.receive(content, buffers ?? []));
    model.on("down", () => {
      for (const [, one] of this.open) one.fail(new Error("The connection was lost; it is being made again."));
      this.settle(this.open.size + this.works.length);
      this.open.clear();
      this.works = [];
      // Another server begins to count anew.
      this.ended = 0;
    });
  }
  on(type, f) {
    this.heard.set(type, f);
  }
  receive(content, buffers) {
    if (content.type !== "reply") {
      this.heard.get(content.type)?.(content, buffers);
      if (content.type === "state") this.end(content.done);
      return;
    }
    const one = this.open.get(content.re);
    this.open.delete(content.re);
    if (!one) return;
    if (content.error) one.fail(new Error(content.error[0].toUpperCase() + content.error.slice(1)));
    else one.done([content, buffers]);
    if (content.work > this.ended) this.works.push(content.work);
    else this.settle(1);
  }
  ask(type, fields = {}, buffers = []) {
    const id = this.begin();
    return new Promise((done, fail) => {
      this.open.set(id, { done, fail });
      this.model.send({ ...fields, type, id }, null, buffers);
    });
  }
  // Anything else that is to be counted, until it is over.
  during(promise) {
    this.begin();
    return promise.finally(() => this.settle(1));
  }
  // The element that shows the two numbers.
  showOn(root) {
    this.root = root;
    this.show();
  }
  show() {
    if (this.root) Object.assign(this.root.dataset, { asked: this.asked, done: this.done });
  }
  begin() {
    this.asked += 1;
    this.show();
    return this.asked;
  }
  end(works) {
    this.ended = works;
    const left = this.works.filter((one) => one > works);
    this.settle(this.works.length - left.length);
    this.works = left;
  }
  settle(count) {
    // What an answer leads to, and asks in its turn, comes before.
    if (count) setTimeout(() => {
      this.done += count;
      this.show();
    });
  }
}

// A view over bytes; comms may hand out odd offsets, which need a copy.
export function typed(Kind, view) {
  const size = Kind.BYTES_PER_ELEMENT;
  if (view.byteOffset % size === 0) return new Kind(view.buffer, view.byteOffset, view.byteLength / size);
  return new Kind(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
}
