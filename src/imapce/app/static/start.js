// The first page: data sets at hand, or a file of one's own and what its columns are.

import { count, empty, h, short } from "./dom.js";
import { button, icon } from "./icons.js";

const ROLES = [["feature", "Feature"], ["known", "Known"], ["label", "Label"], ["ignored", "Ignored"]];

export function startPage(root, link, limit, opened) {
  const list = h("div", { class: "datasets" }, empty("Looking what is at hand…"));
  const trouble = h("p", { class: "trouble", role: "alert", hidden: true });
  const picker = h("input", { type: "file", id: "imapce-file", class: "unseen", accept: ".csv,.tsv,.txt,.dat,.data,.tab,.gz,.bz2,.zst,.zip,.json,.jsonl,.ndjson,.parquet,.arrow,.feather,.ipc,.xlsx,.npy,.npz" });
  const drop = h("label", { class: "drop", htmlFor: "imapce-file" }, icon("out"), h("b", null, "Open a file"), h("span", null, "Drop a table here, or choose one: CSV, TSV, Parquet, Arrow, Excel, .npy"), h("small", null, `Up to ${Math.round(limit / (1 << 20))} MB. It stays on this computer.`));
  const columns = h("div", { class: "columns", hidden: true });
  const work = h("span", null, "");
  const waiting = h("div", { class: "doing", role: "status" }, h("span", { class: "spinner" }), work);
  const page = h("div", { class: "imapce start" },
    h("div", { class: "sheet" },
      h("h1", null, "imapce"), h("p", { class: "lead" }, "See what else is in your data: views that drop what you know and pull apart the clusters of the rest."),
      trouble, h("div", { class: "open" }, picker, drop), columns, h("h2", null, "Or begin with data that is at hand"), list), waiting);
  let theme = null;
  try {
    theme = localStorage.getItem("imapce-theme");
  } catch {
    // Storage may be forbidden; then the system decides.
  }
  page.dataset.theme = theme ?? (window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  root.append(page);
  link.showOn(page);
  document.title = "imapce";

  const say = (words) => {
    trouble.hidden = !words;
    trouble.textContent = words ?? "";
    page.classList.remove("waiting");
    work.textContent = "";
  };
  const wait = (words) => {
    say(null);
    page.classList.add("waiting");
    work.textContent = words;
  };
  const open = (fields, name = fields.dataset.replaceAll("_", " ")) => {
    wait(`Opening ${name}…`);
    link.ask("open", fields).then(opened).catch((problem) => say(problem.message));
  };

  link.ask("offered").then(([told]) => {
    list.replaceChildren(...told.datasets.map((one) => h("button", { type: "button", class: "dataset", title: one.source, onclick: () => open({ dataset: one.name }) },
      h("b", null, one.name.replaceAll("_", " ")), h("span", null, one.words), h("small", null, `${count(one.rows)} rows × ${count(one.columns)} columns`))));
  }).catch((problem) => say(problem.message));

  const receive = async (file) => {
    if (file.size > limit) return say(`${file.name} has ${count(Math.round(file.size / (1 << 20)))} MB, and a page takes ${Math.round(limit / (1 << 20))}; name it on the command line instead: imapce app FILE.`);
    wait(`Sending ${file.name}…`);
    try {
      const answer = await fetch(`/upload?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });
      const sent = await answer.json();
      if (sent.error) return say(sent.error);
      work.textContent = `Reading ${file.name}…`;
      const [told] = await link.ask("inspect", { upload: sent.upload });
      say(null);
      if (told.columns.length) choose(sent.upload, told);
      else open({ upload: sent.upload }, file.name);
    } catch (problem) {
      say(problem.message);
    }
  };
  picker.addEventListener("change", () => {
    if (picker.files[0]) link.during(receive(picker.files[0]));
    // Else the same file, mended, could not be chosen again.
    picker.value = "";
  });
  for (const kind of ["dragover", "drop"]) {
    page.addEventListener(kind, (event) => {
      event.preventDefault();
      if (kind === "drop" && event.dataTransfer.files[0]) link.during(receive(event.dataTransfer.files[0]));
    });
  }

  function choose(upload, told) {
    const roles = Object.fromEntries(told.columns.map((one) => [one.name, one.role]));
    const lines = told.columns.map((one) => {
      const set = h("select", { "aria-label": `Role of ${one.name}` }, ROLES.map(([value, words]) => h("option", { value, selected: value === one.role }, words)));
      set.addEventListener("change", () => (roles[one.name] = set.value));
      return h("tr", null, h("td", null, short(one.name, 40)), h("td", null, one.kind), h("td", null, set), h("td", { class: "reason" }, one.reason));
    });
    columns.hidden = false;
    columns.replaceChildren(
      h("h2", null, `${told.name}: ${count(told.rows)} rows`),
      h("p", null, "Features make the view. What is known is given up. A label only colours."),
      h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "Columns" }, h("table", null, h("thead", null, h("tr", null, ["Column", "Kind", "Role", ""].map((name) => h("th", { scope: "col" }, name)))), h("tbody", null, lines))),
      button("Explore", { class: "main", onclick: () => open({ upload, roles }, told.name) }));
    columns.scrollIntoView({ block: "nearest" });
  }
}
