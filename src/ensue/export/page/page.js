
/* The page: everything is shown as text, never as markup. */
const byId = (id) => document.getElementById(id);
const made = (tag, className, text) => {
    const own = document.createElement(tag);
    if (className) own.className = className;
    if (text !== undefined) own.textContent = text;
    return own;
};
const percent = (p) => `${(100 * p).toFixed(p > 0.9995 || p < 0.0005 ? 2 : 1)} %`;
const MOST_BARS = 12, MOST_WORDS = 120, CELL = 12;
let now = null, chosen = -1, at = null;

function bars(place, p, labels, best) {
    const order = p.map((_, k) => k).sort((a, b) => p[b] - p[a]).slice(0, MOST_BARS);
    place.replaceChildren(...order.map((k) => {
        const row = made("div", best(k) ? "bar best" : "bar"), track = made("div", "track");
        const fill = made("div", "fill");
        fill.style.setProperty("--p", p[k]);
        track.append(fill);
        row.append(made("span", "name", labels[k]), track, made("span", "value", percent(p[k])));
        row.firstChild.title = labels[k];
        return row;
    }));
}

function show() {
    now = answer(byId("text").value);
    const p = now.probabilities, top = p.indexOf(Math.max(...p));
    bars(byId("bars"), p, MODEL.labels, (k) => (MODEL.several ? p[k] > MODEL.threshold : k === top));
    chosen = -1;
    byId("swap").hidden = true;
    words(top);
    map();
    document.documentElement.dataset.answer = JSON.stringify({ label: now.label, probabilities: [...p] });
}

/* A word's share: how much the answer loses when the word is one that the model does not know. */
function words(top) {
    const ids = look(now.tokens), few = ids.length <= MOST_WORDS;
    const shares = ids.map((_, t) => {
        if (!few) return 0;
        const other = ids.slice();
        other[t] = 1;
        return now.probabilities[top] - forward(other).probabilities[top];
    });
    const most = Math.max(0.02, ...shares.map(Math.abs));
    byId("tokens").replaceChildren(...now.tokens.map((token, t) => {
        const own = made("button", isKnown(token) ? "token" : "token unknown", token.trim() === "" ? "␣" : token);
        own.type = "button";
        own.style.setProperty("--share", (0.55 * Math.abs(shares[t]) / most).toFixed(3));
        own.style.setProperty("--tone", shares[t] < 0 ? "var(--minus)" : "var(--plus)");
        own.setAttribute("aria-expanded", "false");
        own.title = `${shares[t] < 0 ? "against" : "for"} ${MODEL.labels[top]}: ${percent(Math.abs(shares[t]))}`;
        own.addEventListener("click", () => swap(t));
        return own;
    }));
    byId("hint").textContent = now.tokens.length
        ? `Blue words speak for “${MODEL.labels[top]}”, orange ones against it; underlined words are unknown to the model. Press a word to try another in its place.`
        : "Words appear here as you type.";
}

function swap(t) {
    chosen = t;
    [...byId("tokens").children].forEach((own, k) => own.setAttribute("aria-expanded", String(k === t)));
    const place = byId("swap"), field = made("input"), found = made("div");
    field.value = now.tokens[t];
    field.setAttribute("aria-label", `Another word in the place of ${now.tokens[t]}`);
    found.style.setProperty("flex", "1 1 18rem");
    const update = () => {
        const tokens = now.tokens.slice();
        tokens.splice(t, 1, ...tokenise(field.value));
        const p = forward(look(tokens)).probabilities, best = p.indexOf(Math.max(...p));
        bars(found, p, MODEL.labels, (k) => (MODEL.several ? p[k] > MODEL.threshold : k === best));
    };
    field.addEventListener("input", update);
    place.replaceChildren(made("span", "", `What if “${now.tokens[t]}” were`), field, found);
    place.hidden = false;
    update();
    field.select();
}

function map() {
    const member = MODEL.members[0], [name, first, units] = member.watched[byId("part").value];
    const canvas = byId("map"), steps = now.tokens.length;
    const wide = Math.max(4, Math.min(4 * CELL, Math.floor(canvas.parentElement.clientWidth / Math.max(steps, 1)))), high = units > 64 ? 4 : CELL;
    canvas.width = Math.max(1, steps * wide);
    canvas.height = units * high;
    canvas.hidden = !steps;
    const style = getComputedStyle(document.documentElement), brush = canvas.getContext("2d");
    const tones = ["--plus", "--minus"].map((own) => style.getPropertyValue(own).trim().replaceAll(" ", ","));
    for (let t = 0; t < steps; t++)
        for (let j = 0; j < units; j++) {
            const v = now.seen[t * member.SEEN + first + j];
            brush.fillStyle = `rgba(${tones[v < 0 ? 1 : 0]},${Math.min(1, Math.abs(v))})`;
            brush.fillRect(t * wide, j * high, wide, high);
        }
    canvas.dataset.wide = wide;
    canvas.dataset.high = high;
    read(null);
}

function read(place) {
    const member = MODEL.members[0], [name, first, units] = member.watched[byId("part").value];
    at = place;
    [...byId("tokens").children].forEach((own, t) => own.classList.toggle("at", place !== null && t === place[0]));
    if (!place || !now.tokens.length) {
        byId("read").textContent = `${name}: ${units} units; blue is above zero, orange below. Hover, or use the arrow keys.`;
        return;
    }
    const t = Math.max(0, Math.min(now.tokens.length - 1, place[0])), j = Math.max(0, Math.min(units - 1, place[1]));
    at = [t, j];
    const v = now.seen[t * member.SEEN + first + j];
    byId("read").textContent = `${name}[${j}] at “${now.tokens[t]}” = ${v.toFixed(4)}`;
}

byId("title").textContent = document.title;
MODEL.members[0].watched.forEach(([name], k) => {
    const own = made("option", "", name);
    own.value = k;
    byId("part").append(own);
});
byId("part").value = MODEL.members[0].watched.findIndex(([name]) => /(^|\s)h($|\s)/.test(name)) + "";
if (byId("part").value === "") byId("part").value = "0";
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
    read(at ? [at[0] + move[0], at[1] + move[1]] : [0, 0]);
});
byId("text").addEventListener("input", show);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => map());
if (location.hash.length > 1) byId("text").value = decodeURIComponent(location.hash.slice(1));
show();
