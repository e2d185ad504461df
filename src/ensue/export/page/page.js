
/* The page: everything is shown as text, never as markup. */
const byId = (id) => document.getElementById(id);
const made = (tag, className, text) => {
    const own = document.createElement(tag);
    if (className) own.className = className;
    if (text !== undefined) own.textContent = text;
    return own;
};
const percent = (p) => `${(100 * p).toFixed(p > 0.9995 || p < 0.0005 ? 2 : 1).replace(/\.0+$/, "")}\u00a0%`; // on one line
const figure = (v) => (Math.abs(v) >= 1e5 || (v && Math.abs(v) < 1e-3) ? v.toExponential(3) : String(Number(v.toPrecision(5))));
const shown = (token) => (token.trim() === "" ? "␣" : token);
const CELL = 12, MOST_WORDS = 120, NOWHERE = "\uffff"; // a word that no vocabulary has
let now = null, hovered = null, asked = 0;

function bars(place, rows, best, most = 12) {
    const order = [...rows.keys()].sort((a, b) => rows[b][1] - rows[a][1]).slice(0, most);
    place.replaceChildren(...order.map((k) => {
        const [name, p] = rows[k], row = made("div", best(k) ? "bar best" : "bar"), track = made("div", "track"), fill = made("div", "fill");
        fill.style.setProperty("--p", p);
        track.append(fill);
        row.append(made("span", "name", shown(name)), track, made("span", "value", percent(p)));
        row.firstChild.title = name;
        return row;
    }));
}

/* What is inside: the states and gates of each recurrence, step by step. */
function layersSeen() {
    const count = (now.steps || []).length, fitting = now.seen.filter((own) => own.steps === count && count > 0);
    return fitting.length ? fitting : now.seen.filter((own) => own.steps > 0);
}

function partsSeen() {
    const place = byId("part"), before = place.value, layers = layersSeen();
    const options = layers.flatMap((own, n) => own.cell.watched.map(([name], k) => {
        const option = made("option", "", `${layers.length > 1 ? `layer ${n + 1} ` : ""}${name}${own.reverse ? " ←" : ""}`);
        option.value = `${n} ${k}`;
        return option;
    }));
    place.replaceChildren(...options);
    byId("inside").hidden = !options.length;
    if (!options.length) return;
    const state = layers[0].cell.watched.findIndex(([name]) => name === "h");
    place.value = options.some((own) => own.value === before) ? before : `0 ${Math.max(0, state)}`;
    map();
}

function watchedNow() {
    const [n, k] = byId("part").value.split(" ").map(Number), own = layersSeen()[n], [name, first, units] = own.cell.watched[k];
    const value = (t, j) => own.values[(own.reverse ? own.steps - 1 - t : t) * own.cell.SEEN + first + j];
    return { name, units, steps: own.steps, value };
}

function map() {
    const { units, steps, value } = watchedNow(), canvas = byId("map");
    const wide = Math.max(4, Math.min(4 * CELL, Math.floor(canvas.parentElement.clientWidth / Math.max(steps, 1)))), high = units > 64 ? 4 : CELL;
    canvas.width = Math.max(1, steps * wide);
    canvas.height = units * high;
    const style = getComputedStyle(document.documentElement), brush = canvas.getContext("2d");
    const tones = ["--plus", "--minus"].map((own) => style.getPropertyValue(own).trim().replaceAll(" ", ","));
    let most = 1e-6;
    for (let t = 0; t < steps; t++) for (let j = 0; j < units; j++) most = Math.max(most, Math.abs(value(t, j)));
    for (let t = 0; t < steps; t++)
        for (let j = 0; j < units; j++) {
            const v = value(t, j);
            brush.fillStyle = `rgba(${tones[v < 0 ? 1 : 0]},${Math.abs(v) / most})`;
            brush.fillRect(t * wide, j * high, wide, high);
        }
    canvas.dataset.most = figure(most);
    canvas.dataset.wide = wide;
    canvas.dataset.high = high;
    read(null);
}

function read(place) {
    const { name, units, steps, value } = watchedNow(), texts = TEXTS.map((step) => now.values[step.to]).filter((own) => own?.length === steps);
    const names = (now.steps || []).length === steps || texts.length !== 1 ? now.steps || [] : texts[0];
    hovered = place;
    [...byId("tokens").querySelectorAll(".token")].forEach((own, t) => own.classList.toggle("at", place !== null && t === place[0]));
    if (!place) {
        byId("read").textContent = `${name}: ${units} units, at most ${byId("map").dataset.most} away from zero; blue is above, orange below. Hover, or use the arrow keys.`;
        return;
    }
    const t = Math.max(0, Math.min(steps - 1, place[0])), j = Math.max(0, Math.min(units - 1, place[1]));
    hovered = [t, j];
    byId("read").textContent = `${name}[${j}] at “${names[t] ?? `step ${t + 1}`}” = ${value(t, j).toFixed(4)}`;
}

/* The words of a question, of each of its texts: what each does for the answer, and what another would do in its
   place. */
const [FIRST_STEP] = MODEL.before, READ = FIRST_STEP.step === "pair" ? FIRST_STEP.to : [FIRST_STEP.text?.to ?? FIRST_STEP.from];
const TEXTS = MODEL.before.filter((step) => step.step === "tokenise" && READ.includes(step.from));
const askedWith = (texts) => (FIRST_STEP.text ? { ...QUESTION.value(), [FIRST_STEP.text.name]: texts[0] } : texts.length === 1 ? texts[0] : texts);
const replaced = (texts, side, t, words) => texts.map((own, k) => (k === side ? [...own.slice(0, t), ...words, ...own.slice(t + 1)] : own));

function words() {
    const texts = TEXTS.map((step) => now.values[step.to]), view = ANSWERS[MODEL.after[0].step], place = byId("tokens");
    const readable = texts.length > 0 && texts.every(Array.isArray);
    byId("words").hidden = !readable;
    if (!readable) return;
    const buttons = texts.map((tokens, side) => tokens.map((token, t) => {
        const own = made("button", "token", shown(token));
        own.type = "button";
        own.setAttribute("aria-expanded", "false");
        own.addEventListener("click", () => swap(place, own, texts, side, t));
        return own;
    }));
    place.replaceChildren(...buttons.flatMap((own, side) => (side ? [made("span", "break"), ...own] : own)));
    byId("words-title").textContent = view.share ? "What each word does" : "What if";
    byId("hint").textContent = !texts.flat().length ? "Words appear here as you type." : view.share ? view.hint(now) : "Press a word to try another in its place.";
    byId("swap").hidden = true;
    if (view.share && texts.flat().length <= MOST_WORDS) shares(buttons.flat(), texts, view.share(now));
}

/* How much the answer loses without each word: a few words at a time, so that typing is not held up. */
function shares(buttons, texts, weight) {
    const run = ++asked, found = [], places = texts.flatMap((own, side) => own.map((_, t) => [side, t]));
    const colour = () => {
        const most = Math.max(0.02, ...found.map(Math.abs));
        buttons.forEach((own, t) => {
            own.style.setProperty("--share", (0.55 * Math.abs(found[t]) / most).toFixed(3));
            own.style.setProperty("--tone", found[t] < 0 ? "var(--minus)" : "var(--plus)");
            own.title = `${found[t] < 0 ? "against" : "for"} the answer: ${percent(Math.abs(found[t]))}`;
        });
    };
    const some = () => {
        const until = performance.now() + 30;
        while (run === asked && found.length < places.length && performance.now() < until) {
            found.push(weight(answer(askedWith(replaced(texts, ...places[found.length], [NOWHERE])))));
        }
        if (run !== asked) return;
        if (found.length < places.length) setTimeout(some, 0);
        else colour();
    };
    setTimeout(some, 0);
}

function swap(place, button, texts, side, t) {
    [...place.children].forEach((own) => own.setAttribute?.("aria-expanded", String(own === button)));
    const field = made("input"), found = made("div", "found"), box = byId("swap"), view = ANSWERS[MODEL.after[0].step];
    field.value = texts[side][t];
    field.setAttribute("aria-label", `Another word in the place of ${texts[side][t]}`);
    const update = () => (view.brief ?? view.show)(found, answer(askedWith(replaced(texts, side, t, tokenise(field.value, TEXTS[side])))));
    field.addEventListener("input", update);
    box.replaceChildren(made("span", "", `What if “${texts[side][t]}” were`), field, found);
    box.hidden = false;
    update();
    field.select();
}

/* What the steps of a recurrence are called; those of a series by their time. */
function stepsShown() {
    const { values } = now;
    if (MODEL.after[0].step === "surprise") return ["(before the text)", ...values.tokens];
    return TEXTS.length ? values[TEXTS[0].to] : seriesSteps(values);
}
const seriesSteps = (values) => (values.read ? ANSWERS["steps ahead"].steps(now) : undefined);

/* In the place of an answer; what else is shown was that of another question. */
function noAnswer(...told) {
    byId("answer").replaceChildren(...told);
    byId("answered").hidden = !told.length;
    delete document.documentElement.dataset.answer;
    byId("words").hidden = byId("inside").hidden = true;
    asked++;
}

function show() {
    const question = QUESTIONS[MODEL.before[0].step], view = ANSWERS[MODEL.after[0].step];
    if (question.empty?.()) return noAnswer();
    try {
        now = answer(question.value());
    } catch (error) {
        return noAnswer(made("p", "hint", error.message));
    }
    now.steps = stepsShown();
    byId("answered").hidden = false; // a plot is as wide as its place
    view.show(byId("answer"), now);
    byId("answered").hidden = !byId("answer").textContent; // no word has a label where there is none
    words();
    partsSeen();
    const { values, seen, steps, all, ...told } = now;
    document.documentElement.dataset.answer = JSON.stringify(told);
}

byId("title").textContent = document.title;
const TASKS_SHOWN = { classify: "A classifier", regress: "A regressor", label: "A labeller", match: "A matcher of two texts", language: "A language model", translate: "A translator", forecast: "A forecaster", tree: "A classifier of trees", table: "A model of a table", image: "A model of pictures", caption: "A captioner" };
byId("about").textContent = `${TASKS_SHOWN[MODEL.task] ?? "A model"} that runs in this page. Nothing you type leaves it.`;
const QUESTION = QUESTIONS[MODEL.before[0].step];
byId("question-title").textContent = QUESTION.title;
byId("part").addEventListener("change", map);
byId("map").addEventListener("mousemove", (event) => {
    const box = event.target.getBoundingClientRect(), { wide, high } = event.target.dataset;
    read([Math.floor((event.clientX - box.left) / wide), Math.floor((event.clientY - box.top) / high)]);
});
byId("map").addEventListener("mouseleave", () => read(null));
byId("map").addEventListener("keydown", (event) => {
    const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!move) return;
    event.preventDefault();
    read(hovered ? [hovered[0] + move[0], hovered[1] + move[1]] : [0, 0]);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);

/* The question in the address, also when that changes; what cannot be read there is no question. */
function begin() {
    const place = byId("question"), written = location.hash.slice(1);
    place.replaceChildren();
    try {
        QUESTION.build(place, written ? decodeURIComponent(written) : null);
    } catch {
        place.replaceChildren();
        QUESTION.build(place, null);
    }
    show();
}
addEventListener("hashchange", begin);
begin();
