// The page: reads the state from the address, asks the server, and shows one view at a time.

import { ServerError, get, keepKey, post } from "./api.js";
import { isDark } from "./colors.js";
import { announce, element, hideTip } from "./dom.js";
import { EXAMPLES, exampleOf } from "./examples.js";
import { saveCsv, saveJson, savePng } from "./exports.js";
import { linesOf, textsOf } from "./files.js";
import { DEFAULTS, read, write } from "./state.js";
import { chooseLanguage, currentLanguage, say } from "./words.js";
import { clusters } from "./views/clusters.js";
import { explain } from "./views/explain.js";
import { layers } from "./views/layers.js";
import { matrix } from "./views/matrix.js";
import { pairs } from "./views/pairs.js";
import { search } from "./views/search.js";

const VIEWS = { matrix, pairs, clusters, search, layers, explain };
const PAUSE_MS = 450, KEPT_ANSWERS = 12;
const part = (id) => document.getElementById(id);

let state = { ...DEFAULTS, texts: [] };
let server = { models: [], model: "", collections: [], limits: { similarity: 500, texts: 5000, characters: 20_000 } };
let result = null; // what the current view shows
let running = null, waiting = null;
const answers = new Map();

async function start() {
  chooseLanguage(localStorage.getItem("twinvec-language") ?? (navigator.language.startsWith("ko") ? "ko" : "en"));
  const theme = localStorage.getItem("twinvec-theme");
  if (theme) document.documentElement.dataset.theme = theme;
  listen();
  state = await read();
  await begin();
}

// Asks what the server offers, then shows the state.
async function begin() {
  try {
    server = await get("/twinvec/about");
    renderAll();
  } catch (error) {
    renderAll({ isSilent: true });
    showProblem(error, begin);
  }
}

function context() {
  return { texts: state.texts, limits: server.limits, collections: server.collections, change };
}

// Changes the state and shows the result; typing waits for a pause.
function change(patch, { isTyped = false } = {}) {
  const isOther = patch.view !== undefined && patch.view !== state.view;
  state = { ...state, ...patch };
  clearTimeout(waiting);
  if (isTyped) waiting = setTimeout(() => update(false), PAUSE_MS);
  else update(isOther);
}

function update(isNewEntry) {
  write(state, isNewEntry);
  render();
}

function renderAll({ isSilent = false } = {}) {
  for (const each of document.querySelectorAll("[data-word]")) each.textContent = say(each.dataset.word);
  for (const each of document.querySelectorAll("[data-label]")) each.setAttribute("aria-label", say(each.dataset.label));
  part("theme").title = say("theme");
  part("texts").placeholder = say("placeholder");
  part("texts").value = state.texts.join("\n");
  for (const each of part("language").children) each.setAttribute("aria-pressed", String(each.value === currentLanguage()));
  part("model").replaceChildren(...server.models.map(({ name }) => element("option", { value: name, selected: name === (state.model || server.model) }, name)));
  part("tabs").replaceChildren(...Object.keys(VIEWS).map(tab));
  part("examples").replaceChildren(...sortedExamples().map((each) => element("li", {}, exampleButton(each))));
  part("exports").replaceChildren(
    ...["CSV", "JSON", "PNG"].map((kind) => element("button", { type: "button", class: "quiet small", id: `export-${kind.toLowerCase()}`, onclick: () => exportAs(kind) }, kind)),
    element("button", { type: "button", class: "quiet small", id: "share", onclick: share }, say("share")),
  );
  if (!isSilent) render();
}

function tab(name) {
  const isChosen = name === state.view;
  return element("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-selected": String(isChosen), "aria-controls": "panel", tabindex: isChosen ? "0" : "-1", onclick: () => change({ view: name }) }, say(name));
}

function sortedExamples() {
  return [...EXAMPLES].sort((a, b) => (b.language === currentLanguage()) - (a.language === currentLanguage()));
}

function exampleButton(example, kind = "chip") {
  const chosen = String(state.example === example.id && state.texts.length > 0);
  const name = element("span", { class: "name" }, say("example")[example.name], element("span", { class: "tag" }, example.language.toUpperCase()));
  const lines = kind === "card" ? example.texts.slice(0, 2).map((text) => element("span", { class: "line", lang: example.language }, text)) : [];
  return element("button", { type: "button", class: kind, "aria-pressed": chosen, "data-example": example.id, onclick: () => showExample(example) }, name, ...lines);
}

function showExample({ id, texts, query }) {
  part("texts").value = texts.join("\n");
  change({ example: id, texts, query, a: "0", b: "1" });
}

// Shows the current state: tabs, controls, and the view, with an answer of the server.
async function render() {
  const view = VIEWS[state.view] ?? VIEWS.matrix;
  running?.abort();
  hideTip();
  delete part("view").dataset.view;
  part("count").textContent = say("count", state.texts.length);
  for (const each of part("tabs").children) {
    const isChosen = each.id === `tab-${state.view}`;
    each.setAttribute("aria-selected", String(isChosen));
    each.tabIndex = isChosen ? 0 : -1;
  }
  part("panel").setAttribute("aria-labelledby", `tab-${state.view}`);
  for (const each of document.querySelectorAll("[data-example]")) each.setAttribute("aria-pressed", String(each.dataset.example === state.example));
  document.title = state.texts.length ? `${say(state.view)} · Twinvec` : "Twinvec";
  part("problem").hidden = true;
  const isReady = state.texts.length >= view.least || (state.view === "search" && Boolean(state.collection));
  document.body.classList.toggle("is-empty", !state.texts.length && !isReady);
  const isHero = document.body.classList.contains("is-empty");
  part("title").textContent = say(isHero ? "heroTitle" : `${state.view}Title`);
  showControls(view, isReady);
  if (!isReady) return showEmpty(state.texts.length ? say(view.least > 1 ? "needTwo" : "needOne") : "");
  const asked = view.request(state, context());
  if (typeof asked === "string") return showEmpty(asked);
  await ask(view, { path: asked.path, body: { ...asked.body, ...(state.model && { model: state.model }) } });
}

// The controls, unless one of them is in use: replacing it would take the focus away.
function showControls(view, isReady) {
  const holder = part("controls");
  const key = JSON.stringify([state.view, currentLanguage(), isReady, state.texts, server.collections]);
  if (holder.key === key && holder.contains(document.activeElement)) return;
  holder.key = key;
  holder.replaceChildren(...(isReady ? view.controls(state, context()) : []));
}

async function ask(view, request) {
  const key = JSON.stringify(request);
  try {
    if (!answers.has(key)) {
      running = new AbortController();
      const { signal } = running;
      const timer = setTimeout(() => !signal.aborted && setBusy(true), 150);
      const began = performance.now();
      try {
        const answer = await post(request.path, request.body, signal);
        answers.set(key, { answer, ms: Math.round(performance.now() - began) });
      } finally {
        clearTimeout(timer);
      }
      if (answers.size > KEPT_ANSWERS) answers.delete(answers.keys().next().value);
      if (signal.aborted) return;
    }
    show(view, answers.get(key));
  } catch (error) {
    if (error.name === "AbortError") return;
    setBusy(false);
    showProblem(error, render);
  }
}

function setBusy(isBusy) {
  part("view").setAttribute("aria-busy", String(isBusy));
  if (isBusy) part("status").textContent = say("working");
}

function show(view, { answer, ms }) {
  setBusy(false);
  const title = say(`${state.view}Title`);
  result = { ...view.show(answer, state, context()), answer, title, name: `twinvec-${state.view}` };
  part("view").replaceChildren(...result.content);
  part("view").dataset.view = state.view;
  part("exports").hidden = false;
  part("status").textContent = say("done", answer.model, ms);
  const n = view.used?.(state.texts.length, server.limits) ?? Math.min(state.texts.length, server.limits.texts);
  const isForeign = server.models.find(({ name }) => name === answer.model)?.is_english && isMostlyForeign(state.texts);
  const notes = [n < state.texts.length && say("firstOnly", n, state.texts.length), isForeign && say("english")].filter(Boolean);
  part("notice").hidden = !notes.length;
  part("notice").textContent = notes.join(" ");
}

// The English models that come with Twinvec know the Latin script.
function isMostlyForeign(texts) {
  const letters = texts.slice(0, 50).join("").match(/\p{L}/gu) ?? [];
  return letters.filter((letter) => !/\p{Script=Latin}/u.test(letter)).length > letters.length / 2;
}

function showEmpty(message) {
  result = null;
  setBusy(false);
  part("exports").hidden = true;
  part("notice").hidden = true;
  part("status").textContent = "";
  const hero = () => [
    element("p", { class: "lead" }, say("heroText")),
    element("div", { class: "cards" }, ...sortedExamples().slice(0, 4).map((each) => exampleButton(each, "card"))),
  ];
  part("view").replaceChildren(...(message ? [element("p", { class: "empty" }, message)] : hero()));
}

function showProblem(error, again) {
  const isKnown = error instanceof ServerError;
  if (!isKnown) console.error(error);
  result = null;
  part("exports").hidden = true;
  part("notice").hidden = true;
  part("status").textContent = "";
  part("view").replaceChildren();
  const text = error.status === 0 ? `${say("offline")} ${say("offlineHint")}` : error.message;
  const isLocked = error.status === 401 || error.status === 403;
  const action = isLocked ? () => askKey(again) : again;
  part("problem").replaceChildren(element("p", {}, text), element("button", { type: "button", onclick: action }, say(isLocked ? "askKey" : "retry")));
  part("problem").hidden = false;
  if (error.status === 401) askKey(again);
}

function askKey(again) {
  const dialog = part("key-dialog");
  if (dialog.open) return;
  part("key").value = "";
  dialog.onclose = () => {
    if (dialog.returnValue !== "save") return;
    keepKey(part("key").value.trim());
    part("key").value = "";
    again();
  };
  dialog.showModal();
}

function exportAs(kind) {
  if (!result) return;
  if (kind === "CSV") saveCsv(result.name, result.table);
  else if (kind === "JSON") saveJson(result.name, { ...result.answer, texts: state.texts });
  else savePng(result.name, { title: result.title, below: result.below ?? [`${result.answer.model} · ${say("count", state.texts.length)}`], picture: result.picture });
}

async function share() {
  const fits = await write(state);
  await navigator.clipboard?.writeText(location.href).catch(() => {});
  part("status").textContent = say(fits ? "shared" : "tooLongToShare");
}

async function openFile(file) {
  try {
    const texts = await textsOf(file);
    if (!texts.length) throw new ServerError(400, say("fileEmpty", file.name));
    part("texts").value = texts.join("\n");
    announce(say("fileRead", file.name, texts.length));
    change({ texts, example: "", a: "0", b: "1" });
  } catch (error) {
    showProblem(error instanceof ServerError ? error : new ServerError(400, say("badFile", file.name)), render);
  }
}

function listen() {
  part("texts").addEventListener("input", () => change({ texts: linesOf(part("texts").value), example: "" }, { isTyped: true }));
  part("file").addEventListener("change", () => part("file").files[0] && openFile(part("file").files[0]).then(() => (part("file").value = "")));
  part("clear").addEventListener("click", () => ((part("texts").value = ""), change({ texts: [], example: "", query: "" }), part("texts").focus()));
  part("home").addEventListener("click", (event) => (event.preventDefault(), (part("texts").value = ""), change({ ...DEFAULTS, model: state.model, texts: [] })));
  part("skip").addEventListener("click", (event) => (event.preventDefault(), part("panel").focus()));
  part("model").addEventListener("change", () => change({ model: part("model").value === server.model ? "" : part("model").value }));
  part("language").addEventListener("click", ({ target }) => target.value && (chooseLanguage(target.value), localStorage.setItem("twinvec-language", target.value), renderAll()));
  part("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    localStorage.setItem("twinvec-theme", document.documentElement.dataset.theme);
    render();
  });
  part("tabs").addEventListener("keydown", moveTab);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => render());
  addEventListener("popstate", async () => ((state = await read()), renderAll()));
  addEventListener("scroll", hideTip, { passive: true });
  for (const kind of ["dragenter", "dragover"]) addEventListener(kind, (event) => (event.preventDefault(), document.body.classList.add("is-dropping")));
  addEventListener("dragleave", (event) => !event.relatedTarget && document.body.classList.remove("is-dropping"));
  addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("is-dropping");
    if (event.dataTransfer.files[0]) openFile(event.dataTransfer.files[0]);
  });
}

function moveTab(event) {
  const names = Object.keys(VIEWS), at = names.indexOf(state.view);
  const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: names.length - 1 }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  change({ view: names[(next + names.length) % names.length] });
  part(`tab-${state.view}`).focus();
}

start();
