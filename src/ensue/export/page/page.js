
/* The page: everything is shown as text, never as markup. */
const byId = (id) => document.getElementById(id);
const made = (tag, className, text) => {
    const own = document.createElement(tag);
    if (className) own.className = className;
    if (text !== undefined) own.textContent = text;
    return own;
};
const percent = (p) => `${(100 * p).toFixed(p > 0.9995 || p < 0.0005 ? 2 : 1)} %`;
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
    const { name, units, steps, value } = watchedNow(), names = now.steps || [];
    hovered = place;
    [...byId("tokens").children].forEach((own, t) => own.classList.toggle("at", place !== null && t === place[0]));
    if (!place) {
        byId("read").textContent = `${name}: ${units} units, at most ${byId("map").dataset.most} away from zero; blue is above, orange below. Hover, or use the arrow keys.`;
        return;
    }
    const t = Math.max(0, Math.min(steps - 1, place[0])), j = Math.max(0, Math.min(units - 1, place[1]));
    hovered = [t, j];
    byId("read").textContent = `${name}[${j}] at “${names[t] ?? `step ${t + 1}`}” = ${value(t, j).toFixed(4)}`;
}

/* The words of a text: what each does for the answer, and what another would do in its place. */
function words() {
    const tokens = now.values.tokens, view = ANSWERS[MODEL.after[0].step], place = byId("tokens");
    const text = MODEL.before[0].step === "tokenise" && Array.isArray(tokens) && Boolean(view.share);
    byId("words").hidden = !text;
    if (!text) return;
    place.replaceChildren(...tokens.map((token, t) => {
        const own = made("button", "token", shown(token));
        own.type = "button";
        own.setAttribute("aria-expanded", "false");
        own.addEventListener("click", () => swap(place, tokens, t));
        return own;
    }));
    byId("hint").textContent = tokens.length ? view.hint(now) : "Words appear here as you type.";
    byId("swap").hidden = true;
    if (tokens.length <= MOST_WORDS) shares(place, tokens, view.share(now));
}

/* How much the answer loses without each word: a few words at a time, so that typing is not held up. */
function shares(place, tokens, weight) {
    const run = ++asked, found = [];
    const colour = () => {
        const most = Math.max(0.02, ...found.map(Math.abs));
        [...place.children].forEach((own, t) => {
            own.style.setProperty("--share", (0.55 * Math.abs(found[t]) / most).toFixed(3));
            own.style.setProperty("--tone", found[t] < 0 ? "var(--minus)" : "var(--plus)");
            own.title = `${found[t] < 0 ? "against" : "for"} the answer: ${percent(Math.abs(found[t]))}`;
        });
    };
    const some = () => {
        const until = performance.now() + 30;
        while (run === asked && found.length < tokens.length && performance.now() < until) {
            const gone = found.length;
            found.push(weight(answer(tokens.map((own, k) => (k === gone ? NOWHERE : own)))));
        }
        if (run !== asked) return;
        if (found.length < tokens.length) setTimeout(some, 0);
        else colour();
    };
    setTimeout(some, 0);
}

function swap(place, tokens, t) {
    [...place.children].forEach((own, k) => own.setAttribute("aria-expanded", String(k === t)));
    const field = made("input"), found = made("div", "found"), box = byId("swap");
    field.value = tokens[t];
    field.setAttribute("aria-label", `Another word in the place of ${tokens[t]}`);
    const update = () => {
        const other = [...tokens];
        other.splice(t, 1, ...tokenise(field.value, MODEL.before[0]));
        ANSWERS[MODEL.after[0].step].show(found, answer(other));
    };
    field.addEventListener("input", update);
    box.replaceChildren(made("span", "", `What if “${tokens[t]}” were`), field, found);
    box.hidden = false;
    update();
    field.select();
}

function show() {
    const question = QUESTIONS[MODEL.before[0].step], view = ANSWERS[MODEL.after[0].step];
    try {
        now = answer(question.value());
    } catch (error) {
        byId("answer").replaceChildren(made("p", "hint", error.message));
        delete document.documentElement.dataset.answer;
        return;
    }
    now.steps = now.values.words && MODEL.after[0].step === "surprise" ? ["(before the text)", ...now.values.tokens] : now.values.tokens;
    view.show(byId("answer"), now);
    words();
    partsSeen();
    const { values, seen, steps, all, ...told } = now;
    document.documentElement.dataset.answer = JSON.stringify(told);
}

byId("title").textContent = document.title;
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
