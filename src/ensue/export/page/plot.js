
/* A series and what is forecast of it. The last points can be dragged, or moved with the arrow keys. */
const MOVABLE = 12, SHOWN_STEPS = 60, PLOT = { height: 300, left: 58, right: 12, top: 20, bottom: 28 };
const NO_NUMBER = /^(|na|nan|null|none|\?|-)$/i, SERIES_STEP = MODEL.before[0];
const WRITTEN = [...SERIES_STEP.time, ...SERIES_STEP.columns];
const drawn = (tag, attributes) => {
    const own = document.createElementNS(byId("blank").namespaceURI, tag);
    for (const [name, value] of Object.entries(attributes)) own.setAttribute(name, value);
    return own;
};
let dragged = null;

/* Lines of a table: cells by tab, comma or semicolon, or by spaces where there is none of these. */
function linesOf(text) {
    const lines = text.split("\n").filter((line) => line.trim()), by = /[\t,;]/.test(text) ? /[\t,;]/ : /\s+/;
    const rows = lines.map((line) => line.trim().split(by).map((cell) => cell.trim()));
    const named = rows.length && rows[0].some((cell) => WRITTEN.includes(cell)) && rows[0].every((cell) => Number.isNaN(Number(cell)));
    const bare = rows.length && rows[0].length <= SERIES_STEP.columns.length && !SERIES_STEP.needs_time ? SERIES_STEP.columns : WRITTEN;
    return { names: named ? rows[0] : bare, rows: named ? rows.slice(1) : rows };
}

const isTime = (name) => SERIES_STEP.time.includes(name);
const cellOf = (cell, name) => (isTime(name) ? cell ?? "" : cell === undefined || NO_NUMBER.test(cell) ? null : Number.isNaN(Number(cell)) ? cell : Number(cell));

function seriesOf() {
    const { names, rows } = linesOf(FIELDS.text.value), found = Object.fromEntries(names.map((name, k) => [name, rows.map((row) => cellOf(row[k], name))]));
    for (const name of SERIES_STEP.columns) found[name] ??= [];
    if (FIELDS.series) SERIES_STEP.ids.forEach((name, k) => { found[name] = JSON.parse(FIELDS.series.value)[k]; });
    for (const [name, field] of FIELDS.facts ?? []) found[name] = field.value;
    return found;
}

function written(series) {
    const names = WRITTEN.filter((name) => series[name]?.length), length = Math.max(0, ...names.map((name) => series[name].length));
    const rows = Array.from({ length }, (_, t) => names.map((name) => series[name][t] ?? (isTime(name) ? "" : "na")).join("\t"));
    return [...(names.length > 1 ? [names.join("\t")] : []), ...rows].join("\n");
}

function moved(name, t, value) {
    const series = seriesOf();
    series[name][t] = Number(value.toPrecision(6));
    FIELDS.text.value = written(series);
    show();
}

/* Times of all steps, those ahead too; as far as a step's times differ. */
function timesShown(found) {
    const { moments, dates, now } = found.values.read;
    if (!moments.length) return (t) => (t < now ? `step ${t + 1}` : `+${t - now + 1}`);
    if (!dates) return (t) => figure(moments[t]);
    const texts = moments.map((own) => new Date(own).toISOString()), ends = [[7, 7], [10, 10], [16, 16]];
    const [length] = ends.find(([end]) => texts.every((text) => `${text.slice(0, end)}${"0000-01-01T00:00:00.000Z".slice(end)}` === text)) ?? [19];
    return (t) => texts[t].slice(0, length).replace("T", " ");
}

function plot(name, found, time) {
    const width = Math.max(320, Math.min(900, byId("answer").clientWidth || 900)), { now, raw, rows } = found.values.read, ahead = found.value[name], at = MODEL.after[0].targets.indexOf(name);
    const first = Math.max(0, now - Math.max(Math.min(SHOWN_STEPS, Math.floor(width / 9)), ahead.length)), shownPast = raw.slice(first, now).map((row) => row[at]);
    const bounds = [shownPast.filter((v) => !Number.isNaN(v)), ahead, ...(found.low ? [found.low[name], found.high[name]] : [])].flat();
    const low = Math.min(...bounds), high = Math.max(...bounds), room = (high - low || 1) * 0.06, count = shownPast.length + ahead.length;
    const x = (k) => PLOT.left + (width - PLOT.left - PLOT.right) * k / Math.max(1, count - 1);
    const scale = (PLOT.height - PLOT.top - PLOT.bottom) / (high - low + 2 * room), y = (v) => PLOT.height - PLOT.bottom - (v - low + room) * scale;
    const value = (at) => low - room + (PLOT.height - PLOT.bottom - at) / scale;
    const svg = drawn("svg", { viewBox: `0 0 ${width} ${PLOT.height}`, class: "plot", role: "group" });
    svg.setAttribute("aria-label", `${name}: the series and its forecast`);
    const label = (at, text, more) => { const own = drawn("text", { class: "axis", ...at, ...more }); own.textContent = text; return own; };
    for (let k = 0; k <= 4; k++) {
        const v = low + (high - low) * k / 4;
        svg.append(drawn("line", { x1: PLOT.left, x2: width - PLOT.right, y1: y(v), y2: y(v), class: "rule" }), label({ x: PLOT.left - 8, y: y(v) + 4 }, figure(Number(v.toPrecision(3))), { "text-anchor": "end" }));
    }
    svg.append(drawn("line", { x1: x(shownPast.length - 1), x2: x(shownPast.length - 1), y1: PLOT.top, y2: PLOT.height - PLOT.bottom, class: "now" }));
    svg.append(label({ x: PLOT.left, y: PLOT.height - 8 }, time(first)), label({ x: x(shownPast.length - 1) - 6, y: PLOT.top - 2 }, time(now - 1), { "text-anchor": "end" }),
        label({ x: width - PLOT.right, y: PLOT.height - 8 }, time(now + ahead.length - 1), { "text-anchor": "end" }));
    const path = (values, from) => values.map((v, k) => (Number.isNaN(v) ? "" : `${k && !Number.isNaN(values[k - 1]) ? "L" : "M"}${x(from + k)} ${y(v)}`)).join("");
    const last = shownPast[shownPast.length - 1];
    if (found.low) {
        const edge = (values) => [last, ...values].map((v, k) => `${x(shownPast.length - 1 + k)} ${y(v)}`);
        svg.append(drawn("path", { d: `M${[...edge(found.high[name]), ...edge(found.low[name]).reverse()].join("L")}Z`, class: "band" }));
    }
    svg.append(drawn("path", { d: path(shownPast, 0), class: "past" }), drawn("path", { d: path([last, ...ahead], shownPast.length - 1), class: "ahead" }));
    const told = (own, text) => { const title = drawn("title", {}); title.textContent = text; own.append(title); return own; };
    svg.append(...ahead.map((v, k) => told(drawn("circle", { cx: x(shownPast.length + k), cy: y(v), r: 3.5, class: "said" }),
        `${time(now + k)}: ${figure(v)}${found.low ? `, ${figure(found.low[name][k])} … ${figure(found.high[name][k])}` : ""}`)));
    shownPast.forEach((v, k) => {
        if (Number.isNaN(v) || k < shownPast.length - MOVABLE) return;
        const point = drawn("circle", { cx: x(k), cy: y(v), r: 6, class: "point", tabindex: 0, role: "slider", "aria-label": `${name}, ${time(first + k)}`, "aria-valuenow": v });
        point.addEventListener("pointerdown", (event) => { event.preventDefault(); dragged = { name, t: rows[first + k], value, at }; });
        point.addEventListener("keydown", (event) => {
            const by = { ArrowUp: 1, ArrowDown: -1 }[event.key];
            if (!by) return;
            event.preventDefault();
            moved(name, rows[first + k], v + by * (high - low) / 50);
            document.querySelectorAll(".plot")[at].querySelectorAll(".point")[k - Math.max(0, shownPast.length - MOVABLE)]?.focus();
        });
        svg.append(told(point, `${name}, ${time(first + k)}: ${figure(v)}`));
    });
    return svg;
}

addEventListener("pointermove", (event) => {
    if (!dragged) return;
    const box = document.querySelectorAll(".plot")[dragged.at].getBoundingClientRect();
    moved(dragged.name, dragged.t, dragged.value((event.clientY - box.top) / box.height * PLOT.height));
});
addEventListener("pointerup", () => { dragged = null; });
addEventListener("resize", () => show());

/* A series to begin with, of the size and season that the model has learned. */
function freshSeries() {
    const { mean, spread, columns, look_back: back, lag, transform, least, horizon, known, season, calendar, needs_time: timed, time } = SERIES_STEP;
    const [, outward] = LEVELS[transform], steps = Math.max(back + lag, least, 2 * season) + 12, turn = 2 * Math.PI / (season > 1 ? season : 12);
    const wave = (k, c) => Number((c < SERIES_STEP.targets ? outward : (v) => v)(lag && c < SERIES_STEP.targets ? 0.5 * Math.sin(k * turn) : mean[0][c] + spread[0][c] * (Math.sin(k * turn) + 0.3 * Math.sin(3.7 * k))).toPrecision(4));
    const found = Object.fromEntries(columns.map((name, c) => [name, Array.from({ length: c < columns.length - known ? steps : steps + horizon }, (_, k) => wave(k, c))]));
    if (timed && time.length === 1) {
        const spacing = calendar.includes("hour") ? { kind: "span", size: DAY / 24 } : calendar.includes("weekday") ? { kind: "span", size: DAY } : { kind: "months", size: 1 };
        const end = spacing.kind === "months" ? 7 : spacing.size === DAY ? 10 : 16;
        found[time[0]] = Array.from({ length: steps + (known ? horizon : 0) }, (_, k) => new Date(timeAfter(spacing, Date.UTC(2020, 0, 1), k)).toISOString().slice(0, end).replace("T", " "));
    }
    return found;
}

QUESTIONS.series = {
    title: WRITTEN.length > 1 ? `${WRITTEN.join(", ")}: one step a line` : "The series, one step a line",
    build: (place, begun) => {
        const given = begun ? JSON.parse(begun) : freshSeries(), series = Array.isArray(given) ? Object.fromEntries(SERIES_STEP.columns.map((name, k) => [name, given.map((row) => [row].flat()[k])])) : given;
        const boxes = made("div", "fields"), labelled = (name, own) => { const label = made("label", "field", name); own.addEventListener("input", show); label.append(own); boxes.append(label); return own; };
        if (SERIES_STEP.ids.length) {
            const chosen = SERIES_STEP.ids.map((name) => (series[name] === undefined ? null : String([series[name]].flat()[0]))), keys = [...SERIES_STEP.series];
            if (!chosen.includes(null) && !keys.some((key) => key.join("\n") === chosen.join("\n"))) keys.push(chosen);
            FIELDS.series = made("select");
            FIELDS.series.append(...keys.map((key) => { const option = made("option", "", key.join(", ")); option.value = JSON.stringify(key); return option; }));
            if (!chosen.includes(null)) FIELDS.series.value = JSON.stringify(chosen);
            labelled(SERIES_STEP.ids.join(", "), FIELDS.series);
        }
        FIELDS.facts = SERIES_STEP.static.map(([name, code]) => {
            const own = made(code.names.length ? "select" : "input"), value = [series[name] ?? (code.names[0] ?? Number(code.mean.toPrecision(4)))].flat()[0];
            own.append(...[...new Set([...code.names, ...(code.names.length ? [String(value)] : [])])].map((text) => made("option", "", text)));
            own.value = value;
            return [name, labelled(name, own)];
        });
        FIELDS.text = textField("The series, one step a line", written(series), show, "The series, one step a line");
        FIELDS.text.classList.add("numbers");
        FIELDS.text.wrap = "off";
        place.append(...(boxes.children.length ? [boxes] : []), FIELDS.text);
        if (begun) return;
        const told = made("p", "hint", "This series is an example, made up: paste your own in its place.");
        FIELDS.text.addEventListener("input", () => told.remove());
        place.append(told);
    },
    value: seriesOf,
};

ANSWERS["steps ahead"] = {
    steps: (found) => {
        const time = timesShown(found), { now } = found.values.read, { look_back: back } = SERIES_STEP;
        return Array.from({ length: back }, (_, t) => (now - back + t < 0 ? "before the series" : time(now - back + t)));
    },
    show: (place, found) => {
        const step = MODEL.after[0], table = made("table", "steps"), head = made("tr"), time = timesShown(found), { now } = found.values.read;
        head.append(made("th", "", "step"), ...step.targets.flatMap((name) => [made("th", "", name), ...(found.low ? [made("th", "", `${percent(step.share)} interval`)] : [])]));
        table.append(head, ...found.value[step.targets[0]].map((_, t) => {
            const row = made("tr");
            row.append(made("th", "", time(now + t)), ...step.targets.flatMap((name) => [made("td", "", figure(found.value[name][t])),
                ...(found.low ? [made("td", "", `${figure(found.low[name][t])} … ${figure(found.high[name][t])}`)] : [])]));
            return row;
        }));
        const scroll = made("div", "scroll");
        scroll.append(table);
        const plots = step.targets.flatMap((name) => [...(step.targets.length > 1 ? [made("h3", "", name)] : []), plot(name, found, time)]);
        place.replaceChildren(...plots, made("p", "hint", "Drag the last points, or move them with the arrow keys."), scroll);
    },
};
