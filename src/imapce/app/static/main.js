// The page on its own server: a socket, the start page, the instrument.

import { render } from "./app.js";
import { h } from "./dom.js";
import { Link, SocketModel } from "./link.js";
import { startPage } from "./start.js";

const root = document.getElementById("imapce");
const kept = () => sessionStorage.getItem("imapce-tab") ?? "";
const model = new SocketModel((path) => `ws://${location.host}/${path}?tab=${encodeURIComponent(kept())}`);
const link = new Link(model);
let shown = null;

async function where() {
  const [told] = await link.ask("where");
  sessionStorage.setItem("imapce-tab", told.tab);
  model.besides();
  if (told.open && shown?.kind === "app") return shown.again();
  shown?.gone?.();
  root.replaceChildren();
  if (told.open) shown = { kind: "app", ...render({ model, el: root, link, onHome: leave }) };
  else {
    shown = { kind: "start" };
    startPage(root, link, told.limit, where);
  }
}

async function leave() {
  await link.ask("leave");
  await where();
}

model.on("up", () => where().catch((problem) => root.replaceChildren(h("p", { class: "fatal", role: "alert" }, problem.message))));
model.on("down", () => shown?.lost?.());
