
/* A series and what is forecast of it. The last points can be dragged, or moved with the arrow keys. */
const MOVABLE = 12, PLOT = { width: 900, height: 320, left: 60, right: 14, top: 14, bottom: 30 };
const drawn = (tag, attributes) => {
    const own = document.createElementNS(byId("blank").namespaceURI, tag);
    for (const [name, value] of Object.entries(attributes)) own.setAttribute(name, value);
    return own;
};
let dragged = null;

function seriesOf() {
    const names = MODEL.before[0].columns, lines = FIELDS.text.value.split("\n").filter((line) => line.trim());
    const rows = lines.map((line) => line.trim().split(/[\s,;]+/).map((text) => (text === "" || /^(na|nan|null|\?|-)$/i.test(text) ? null : Number(text))));
    return Object.fromEntries(names.map((name, k) => [name, rows.map((row) => row[k] ?? null)]));
}

function moved(name, t, value) {
    const names = MODEL.before[0].columns, series = seriesOf();
    series[name][t] = Number(value.toPrecision(6));
    FIELDS.text.value = series[names[0]].map((_, k) => names.map((own) => series[own][k] ?? "na").join(" ")).join("\n");
    show();
}

function plot(name, found, past) {
    const ahead = found.value[name], shownPast = past.slice(-60), first = past.length - shownPast.length;
    const bounds = [shownPast.filter((v) => v !== null), ahead, ...(found.low ? [found.low[name], found.high[name]] : [])].flat();
    const low = Math.min(...bounds), high = Math.max(...bounds), room = (high - low || 1) * 0.06, count = shownPast.length + ahead.length;
    const x = (k) => PLOT.left + (PLOT.width - PLOT.left - PLOT.right) * k / Math.max(1, count - 1);
    const scale = (PLOT.height - PLOT.top - PLOT.bottom) / (high - low + 2 * room), y = (v) => PLOT.height - PLOT.bottom - (v - low + room) * scale;
    const value = (at) => low - room + (PLOT.height - PLOT.bottom - at) / scale;
    const svg = drawn("svg", { viewBox: `0 0 ${PLOT.width} ${PLOT.height}`, class: "plot", role: "group" });
    svg.setAttribute("aria-label", `${name}: the series and its forecast`);
    for (let k = 0; k <= 4; k++) {
        const v = low + (high - low) * k / 4, label = drawn("text", { x: PLOT.left - 8, y: y(v) + 4, class: "axis", "text-anchor": "end" });
        label.textContent = figure(v);
        svg.append(drawn("line", { x1: PLOT.left, x2: PLOT.width - PLOT.right, y1: y(v), y2: y(v), class: "rule" }), label);
    }
    const path = (values, from) => values.map((v, k) => (v === null ? "" : `${k && values[k - 1] !== null ? "L" : "M"}${x(from + k)} ${y(v)}`)).join("");
    if (found.low) {
        const up = found.high[name].map((v, k) => `${x(shownPast.length + k)} ${y(v)}`), down = found.low[name].map((v, k) => `${x(shownPast.length + k)} ${y(v)}`).reverse();
        svg.append(drawn("path", { d: `M${[...up, ...down].join("L")}Z`, class: "band" }));
    }
    const last = shownPast[shownPast.length - 1];
    svg.append(drawn("path", { d: path(shownPast, 0), class: "past" }), drawn("path", { d: path([last, ...ahead], shownPast.length - 1), class: "ahead" }));
    shownPast.forEach((v, k) => {
        if (v === null || k < shownPast.length - MOVABLE) return;
        const point = drawn("circle", { cx: x(k), cy: y(v), r: 6, class: "point", tabindex: 0, role: "slider", "aria-label": `step ${first + k + 1}`, "aria-valuenow": v });
        const title = drawn("title", {});
        title.textContent = `${name}, step ${first + k + 1}: ${figure(v)}`;
        point.append(title);
        point.addEventListener("pointerdown", (event) => { event.preventDefault(); dragged = { name, t: first + k, value, svg }; });
        point.addEventListener("keydown", (event) => {
            const by = { ArrowUp: 1, ArrowDown: -1 }[event.key];
            if (!by) return;
            event.preventDefault();
            moved(name, first + k, v + by * (high - low) / 50);
            document.querySelectorAll(".point")[k - Math.max(0, shownPast.length - MOVABLE)]?.focus();
        });
        svg.append(point);
    });
    return svg;
}

addEventListener("pointermove", (event) => {
    if (!dragged) return;
    const box = document.querySelector(".plot").getBoundingClientRect();
    moved(dragged.name, dragged.t, dragged.value((event.clientY - box.top) / box.height * PLOT.height));
});
addEventListener("pointerup", () => { dragged = null; });

QUESTIONS.series = {
    title: "The series, one step a line",
    build: (place, begun) => {
        const { mean, spread, columns, look_back: needed, lag, transform, least = 0 } = MODEL.before[0];
        const [, back] = LEVELS[transform], steps = Math.max(needed + lag, least) + 8;
        const wave = (k, c) => Number(back(lag ? 0.5 * Math.sin(k / 2) : mean[c] + spread[c] * Math.sin(k / 2)).toPrecision(4));
        const fresh = Array.from({ length: steps }, (_, k) => columns.map((_, c) => wave(k, c)).join(" ")).join("\n");
        const given = begun ? JSON.parse(begun) : null, rows = Array.isArray(given) ? given : null;
        FIELDS.text = textField("The series, one step a line", rows ? rows.join("\n") : given ? given[columns[0]].map((_, k) => columns.map((name) => given[name][k]).join(" ")).join("\n") : fresh, show);
        place.append(FIELDS.text);
    },
    value: seriesOf,
};

QUESTIONS["mixed series"] = QUESTIONS.series;

ANSWERS["steps ahead"] = {
    show: (place, found) => {
        const step = MODEL.after[0], series = seriesOf(), table = made("table", "steps"), head = made("tr");
        head.append(made("th", "", "step"), ...step.targets.flatMap((name) => [made("th", "", name), ...(found.low ? [made("th", "", `${percent(step.share)} interval`)] : [])]));
        table.append(head, ...found.value[step.targets[0]].map((_, t) => {
            const row = made("tr");
            row.append(made("th", "", `+${t + 1}`), ...step.targets.flatMap((name) => [made("td", "", figure(found.value[name][t])),
                ...(found.low ? [made("td", "", `${figure(found.low[name][t])} … ${figure(found.high[name][t])}`)] : [])]));
            return row;
        }));
        const scroll = made("div", "scroll");
        scroll.append(table);
        place.replaceChildren(...step.targets.map((name) => plot(name, found, series[name])), made("p", "hint", "Drag the last points, or move them with the arrow keys."), scroll);
    },
};
