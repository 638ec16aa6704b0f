// The loop: look, take, go on; how much is left, and whether it is anything.

import { count, h, rowsOf } from "./dom.js";
import { button } from "./icons.js";

export function actionsPanel(app) {
  const bar = ["known", "taken", "left"].map((name) => h("span", { class: name }));
  const left = h("p", { class: "left" });
  const next = button("Next view", { class: "main", hidden: true, onclick: () => app.ask("next") });
  const take = button("Take most distinct", { class: "main", hidden: true, onclick: () => app.ask("take", { what: "most" }) });
  const name = h("input", { type: "text", placeholder: "Optional name", maxLength: 60, "aria-label": "Name of the rows you take" });
  const takeSelection = button("Take selection", {
    onclick: async () => {
      const [told] = await app.ask("take", { what: "selection", name: name.value.trim() || null });
      if (told) name.value = "";
    },
  });
  name.addEventListener("keydown", (event) => event.key === "Enter" && takeSelection.click());
  const split = button("Split this one", { hidden: true, title: "Let this cluster fall into the pieces it is made of", onclick: () => app.ask("split", app.selected.clusters.length ? { cluster: app.selected.clusters[0] } : { number: app.selected.taken[0] }) });
  const merge = button("Merge", { hidden: true, title: "Make these clusters one", onclick: () => app.ask("merge", { numbers: app.selected.taken }) });
  const run = button("Run to the end", { hidden: true, onclick: () => app.ask("run") });
  const cancel = button("Cancel", { class: "warn", hidden: true, onclick: () => app.ask("cancel") });
  const back = button("Back to now", { class: "main", hidden: true, onclick: () => (app.state.proposed ? app.ask("view", { number: 0 }) : app.ask("next")) });
  const chosen = h("div", { class: "chosen", hidden: true }, h("p", null, ""), h("div", { class: "row" }, name, takeSelection), h("div", { class: "row" }, split, merge));
  const work = h("div", { class: "work", hidden: true }, h("progress", { max: 1 }), h("p", null, ""));
  const stop = h("p", { class: "stop", hidden: true });
  const remainsWords = h("p", null, "");
  const remains = h("div", { class: "verdict remains", hidden: true }, h("h3", null, "Is anything left?"), remainsWords);
  const verdictWords = h("p", null, "");
  const anyway = button("Show the best split anyway", { hidden: true, onclick: () => app.ask("settings", { structure: "ignore" }) });
  const leave = button("Leave it as one group", { hidden: true, onclick: () => app.ask("settings", { structure: "heed" }) });
  const verdict = h("div", { class: "verdict found", hidden: true }, h("h3", null, "Is anything there?"), verdictWords, h("div", { class: "row" }, anyway, leave));
  const readBack = h("p", { class: "readback", hidden: true });
  const el = h("section", { class: "card actions", "aria-label": "Explore" },
    left, h("div", { class: "stack", role: "img", "aria-label": "Rows known, taken and left" }, bar),
    h("div", { class: "row" }, next, take, back), chosen, h("div", { class: "row" }, run, cancel), work, stop, verdict, remains, readBack);

  app.onSelection.push((told) => {
    chosen.hidden = !told.count;
    const known = told.known ? `, ${count(told.known)} of them known already` : "";
    chosen.firstChild.textContent = `${rowsOf(told.count)} selected${known}`;
    takeSelection.disabled = told.count === told.known || app.state?.looking.kind === "step";
    split.hidden = told.clusters.length + told.taken.length !== 1;
    merge.hidden = told.taken.length < 2;
  });

  return {
    el,
    takeMost: () => !take.disabled && !take.hidden && take.click(),
    next: () => !next.disabled && !next.hidden && next.click(),
    refresh(state) {
      const parts = [state.known_at_start, state.taken, state.left];
      bar.forEach((one, i) => (one.style.flexGrow = String(parts[i])));
      left.textContent = state.left ? `${rowsOf(state.left)} of ${count(state.rows)} left to explore` : "Every row is explored";
      const busy = Boolean(state.busy);
      const looking = ["step", "overview"].includes(state.looking.kind);
      const held = busy && !state.busy.gives_way;
      back.hidden = !looking || held || Boolean(state.stop);
      next.hidden = looking || state.proposed || Boolean(state.stop);
      take.hidden = looking || !state.proposed || Boolean(state.stop);
      next.disabled = held || Boolean(state.stop);
      take.disabled = held || !state.can_take_most;
      take.title = state.can_take_most ? "Take the outlined cluster into the known, and look again" : "No cluster is outlined yet";
      run.disabled = held || Boolean(state.stop);
      run.hidden = held || Boolean(state.stop);
      cancel.hidden = !busy;
      if (!busy) work.hidden = true;
      stop.hidden = !state.stop;
      stop.textContent = state.stop ?? "";
      readBack.hidden = !state.read_back;
      readBack.textContent = state.read_back ?? "";
      remains.hidden = !state.remains || !state.left;
      remains.dataset.verdict = state.remains?.verdict ?? "";
      remainsWords.textContent = `${state.remains?.words}.`;
      const found = state.structure;
      verdict.hidden = !found;
      if (!found) return;
      verdict.dataset.verdict = found.verdict;
      const best = found.best && !found.shown ? ` ${found.best}.` : found.verdict === "none" && found.shown ? " These are the groups of the best split." : "";
      verdictWords.textContent = `${found.words}.${best}`;
      anyway.hidden = held || found.shown || !found.best;
      leave.hidden = held || !found.shown || found.verdict !== "none" || state.n_clusters !== null;
    },
    progress(told) {
      work.hidden = false;
      const [meter, words] = work.children;
      if (told.share === null) meter.removeAttribute("value");
      else meter.value = told.share;
      words.textContent = `${told.words}…`;
      cancel.hidden = false;
    },
  };
}
