// What colours mean: a choice of columns, and a legend of real buttons that select.

import { count, empty, h, niceNumber, percent, renew, short } from "./dom.js";

export function legendPanel(app) {
  const choice = h("select", { "aria-label": "Colour by" });
  const body = h("div", { class: "legend" });
  const el = h("section", { class: "card", "aria-label": "Colours" }, h("div", { class: "head" }, h("h3", null, "Colour by"), choice), body);
  let told = null;
  let walking = -1;

  choice.addEventListener("change", async () => {
    const [answer, [codes]] = await app.ask("colour", { by: choice.value });
    if (!answer) return;
    app.plot.raster.setCodes(new Uint8Array(codes.buffer, codes.byteOffset, codes.byteLength));
    app.plot.draw();
    app.timeline.recolour();
    panel.show(answer);
  });

  const chosenBy = (entry) => {
    if (entry.cluster !== undefined) return { how: "cluster", cluster: entry.cluster };
    if (entry.group !== undefined) return { how: told.by, number: entry.group };
    return { how: "code", code: entry.code };
  };

  const pick = (entry, place, mode = "replace") => {
    walking = place;
    app.select({ ...chosenBy(entry), mode });
  };

  const panel = {
    el,
    columns(names) {
      const groups = [["cluster", "Clusters in this view"], ["taken", "Clusters taken"], ["step", "Step"]];
      choice.replaceChildren(
        ...groups.map(([value, words]) => h("option", { value }, words)),
        h("optgroup", { label: "Columns" }, names.map((name) => h("option", { value: `column:${name}` }, short(name, 40)))));
      if (told) choice.value = told.by;
    },
    show(colours) {
      // The most distinct comes first, or it could lie below the end of the list.
      told = { ...colours, legend: [...colours.legend].sort((a, b) => Number(b.most ?? false) - Number(a.most ?? false)) };
      walking = -1;
      choice.value = told.by;
      panel.refresh();
    },
    refresh() {
      if (!told) return;
      const entries = told.legend.map((entry, place) => {
        const total = app.state?.rows || told.legend.reduce((sum, one) => sum + one.count, 0);
        const line = h("button", { type: "button", class: "entry", "data-place": place, title: "Select these rows; with Shift, add them", onclick: (event) => pick(told.legend[place], place, event.shiftKey ? "add" : "replace") },
          h("span", { class: "swatch", style: { background: app.palette?.[entry.code] } }),
          h("span", { class: "label" }, short(entry.name, 30), entry.most ? h("em", null, "most\u00a0distinct") : null),
          h("span", { class: "number" }, count(entry.count)),
          h("span", { class: "share" }, percent(entry.count / total)),
          entry.words ? h("small", null, entry.words) : null);
        return line;
      });
      const scale = told.scale
        ? h("div", { class: "scale" }, h("div", { class: "ramp", style: { background: `linear-gradient(90deg, ${(app.palette ?? []).slice(told.scale.first).join(",")})` } }), h("div", { class: "ends" }, h("span", null, niceNumber(told.scale.low)), h("span", null, niceNumber(told.scale.high))))
        : null;
      const none = entries.length || scale ? null : empty("Nothing to colour yet.");
      body.classList.toggle("all", told.legend.some((entry) => entry.words));
      renew(body, [scale, ...entries, none].filter(Boolean));
    },
    // Arrows walk the clusters of the view.
    walk(by) {
      const clusters = (told?.legend ?? []).filter((one) => !one.known && !one.loose);
      if (!clusters.length) return;
      walking = (walking + by + clusters.length) % clusters.length;
      pick(clusters[walking], walking);
      app.say(`${clusters[walking].name}, ${count(clusters[walking].count)} rows`);
    },
  };
  return panel;
}
