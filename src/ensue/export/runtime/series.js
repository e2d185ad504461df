/* Series: scaled numbers of the last steps, what is known of those ahead, and the answer in the units of
   the data. Rows of a table are steps; NaN is a number that is missing. */
const LEVELS = { none: [(y) => y, (y) => y], log: [Math.log, Math.exp], log1p: [Math.log1p, Math.expm1] }, LEAST = { none: -Infinity, log: 0, log1p: -1 };
/* NaN where a number is missing. */
function numberOrGap(own, name, { missing }) {
    if (own === null || own === undefined || Number.isNaN(own) || (typeof own === "string" && missing.includes(stripped(own).toLowerCase()))) return NaN;
    const found = typeof own === "boolean" ? Number(own) : finiteNumber(own);
    if (Number.isNaN(found)) throw new Error(`column ${name}: expected a finite number, at most 1e+30, got ${quoted(own)}`);
    return found;
}

function levelOf(v, k, step) {
    const y = step.floor && step.transform !== "none" ? Math.max(v, step.floor[k]) : v;
    if (y <= LEAST[step.transform]) throw new Error(`expected numbers > ${LEAST[step.transform]}, got ${y}`);
    return LEVELS[step.transform][0](y);
}

/* A question as columns by name: numbers of the only column, rows of numbers, or rows by name. */
function byColumn(given, { columns, time }) {
    if (isRow(given)) return given;
    if (!isList(given)) throw refused(`numbers, or columns by name (${[...time, ...columns].join(", ")})`, given);
    if (given.length && given.every(isRow)) return Object.fromEntries([...new Set(given.flatMap(Object.keys))].map((name) => [name, given.map((row) => row[name] ?? null)]));
    const rows = Array.from(given, (row) => (isList(row) ? row : [row])), wrong = rows.find((row) => row.length !== columns.length);
    if (wrong) throw refused(`${columns.join(", ")} at each step`, wrong);
    return Object.fromEntries(columns.map((name, k) => [name, rows.map((row) => row[k])]));
}

/* Of the longest column. Where columns are known ahead, the others may end before them. */
function stepsGiven(given, { columns, time, known }) {
    const missing = columns.find((name) => !Object.hasOwn(given, name)), names = [...time.filter((name) => Object.hasOwn(given, name)), ...columns];
    if (missing !== undefined) throw new Error(`expected the columns ${columns.join(", ")}, got no ${missing}`);
    for (const name of names) if (!isList(given[name])) throw new Error(`column ${name}: expected a list, got ${quoted(given[name])}`);
    const most = Math.max(...names.map((name) => given[name].length)), past = known ? columns.slice(0, -known) : [];
    if (names.some((name) => given[name].length !== most && !past.includes(name)))
        throw new Error(`expected columns of one length, got ${names.map((name) => `${name} ${given[name].length}`).join(", ")}`);
    return most;
}

function tableOf(given, step) {
    return Array.from({ length: stepsGiven(given, step) }, (_, t) => step.columns.map((name) => numberOrGap(given[name][t], name, step)));
}

/* With a row for each step between the first time and the last; rows: where each stood, −1 where none did. */
function inTime(table, given, step) {
    const names = step.time;
    if (!names.length || names.some((name) => !Object.hasOwn(given, name))) {
        if (step.needs_time) throw new Error(`expected the column ${names.join(", ")}: this model reads the time`);
        return { table, moments: [], spacing: null, dates: false, rows: [...table.keys()] };
    }
    const texts = timeTexts(given, names), { dates, moments: read } = readTimes(texts, step.reads), order = [...read.keys()].sort((a, b) => read[a] - read[b]);
    const sorted = order.map((k) => read[k]), rows = order.map((k) => table[k]), twice = order.find((k, place) => place && read[k] === sorted[place - 1]);
    if (twice !== undefined) throw new Error(`column ${names.join(", ")}: ${quoted(texts[twice])} comes twice`);
    const spacing = spacingOf(sorted, dates);
    if (!spacing) return { table: rows, moments: sorted, spacing, dates, rows: order };
    const filled = [rows[0]], moments = [sorted[0]], from = [order[0]];
    for (let k = 1; k < rows.length; k++) {
        const before = moments[moments.length - 1], gap = stepsBetween(spacing, before, sorted[k]);
        for (let j = 1; j < gap; j++) { moments.push(timeAfter(spacing, before, j)); filled.push(rows[k].map(() => NaN)); from.push(-1); }
        moments.push(sorted[k]);
        filled.push(rows[k]);
        from.push(order[k]);
    }
    return { table: filled, moments, spacing, dates, rows: from };
}

/* The last number that was there in the place of a missing one; 0 before the first. */
const carried = (table) => { let before = null; return table.map((row) => (before = row.map((v, k) => (Number.isNaN(v) ? (before ? before[k] : 0) : v)))); };

function namedSeries(given, step) {
    if (!step.ids.length) return 0;
    if (step.ids.some((name) => given[name] === undefined)) throw new Error(`expected the column ${step.ids.join(", ")}: which series is it?`);
    const key = step.ids.map((name) => stripped(String([given[name]].flat()[0])));
    return step.series.findIndex((own) => own.every((text, k) => text === key[k]));
}

function momentsOf(values, typical) {
    return typical.map((usual, k) => {
        const there = values.map((row) => row[k]).filter((v) => !Number.isNaN(v)), count = Math.max(1, there.length), mean = there.reduce((a, b) => a + b, 0) / count;
        const spread = Math.sqrt(there.reduce((sum, v) => sum + (v - mean) ** 2, 0) / count);
        return [mean, spread <= 1e-12 * Math.max(Math.abs(mean), 1) ? usual : spread];
    });
}

const staticNumbers = (given, step) => step.static.flatMap(([name, code]) => {
    const own = [given[name]].flat().find((v) => v !== null && v !== undefined && v !== "");
    if (code.names.length) return code.names.map((other) => Number(stripped(String(own ?? "")) === other));
    const value = finiteNumber(own);
    return [Number.isNaN(value) ? 0 : (value - code.mean) / code.spread];
});

function stepsKnown(table, step) {
    let now = table.length;
    while (now && table[now - 1].slice(0, step.targets).every(Number.isNaN)) now--;
    if (now < step.least) throw new Error(`expected at least ${step.least} steps, got ${now}`);
    if (step.known && table.length - now < step.horizon) throw new Error(`expected ${step.columns.slice(-step.known).join(", ")} of the next ${step.horizon} steps, got ${table.length - now}`);
    return now;
}

STEPS.series = (values, step) => {
    const given = byColumn(values[step.from], step), { lag, targets, horizon, look_back: back } = step, found = inTime(tableOf(given, step), given, step), { spacing, moments } = found;
    const now = stepsKnown(found.table, step), raw = found.table, more = Math.max(0, now + horizon - raw.length), last = moments[moments.length - 1];
    for (let k = 1; k <= more; k++) {
        raw.push(step.columns.map(() => NaN));
        if (moments.length) moments.push(timeAfter(spacing, last, k));
    }
    const levels = raw.map((row) => row.map((v, k) => (k < targets ? levelOf(v, k, step) : v)));
    const differences = levels.map((row, t) => row.map((v, k) => (k >= targets || !lag ? v : t < lag ? NaN : v - levels[t - lag][k])));
    const row = namedSeries(given, step), scale = row < 0 ? momentsOf(differences.slice(lag, step.history), step.typical) : step.mean[row].map((mean, k) => [mean, step.spread[row][k]]);
    values.levels = levels.slice(now - lag, now);
    values.scale = scale;
    const fixed = staticNumbers(given, step), start = step.columns.length - step.known;
    const wide = carried(differences.map((own, t) => {
        const z = own.map((v, k) => (v - scale[k][0]) / scale[k][1]), there = step.members.length ? raw[t].slice(0, targets).map((v) => Number(!Number.isNaN(v))) : [];
        return [...z.slice(0, start), ...there, ...z.slice(start), ...(step.calendar.length ? calendarOf(moments[t], step.calendar) : []), ...fixed];
    }));
    const width = wide[0].length, ahead = step.known + 2 * step.calendar.length + fixed.length;
    values[step.to] = Array.from({ length: back }, (_, t) => wide[now - back + t] ?? new Array(width).fill(0));
    values.known = wide.slice(now, now + horizon).map((own) => own.slice(width - ahead));
    values.read = { now, moments, dates: found.dates, raw, rows: found.rows };
    if (step.members.length) values.base = mixed(groundOf(raw, now, clockOf(spacing, moments[now - 1], now - 1), row, step), step, scale);
};

AFTER["steps ahead"] = (found, step) => {
    const { dims, data } = found.values.ahead, [horizon, , targets] = dims, [, fromLevel] = LEVELS[step.transform], { scale } = found.values;
    const levels = step.targets.map((_, k) => {
        const own = [];
        for (let t = 0; t < horizon; t++) {
            const back = !step.lag ? 0 : t < step.lag ? found.values.levels[t][k] : own[t - step.lag];
            own.push(data[t * targets + k] * scale[k][1] + scale[k][0] + back);
        }
        return own;
    });
    const unit = (k) => (step.panel ? scale[k][1] : 1);
    const named = (change) => Object.fromEntries(step.targets.map((name, k) => [name, levels[k].map((v, t) => fromLevel(change(v, t, k)))]));
    found.value = named((v) => v);
    if (step.widening) {
        found.low = named((v, t, k) => v - Math.max(0, step.widening[t][k] * unit(k)));
        found.high = named((v, t, k) => v + Math.max(0, step.widening[t][k] * unit(k)));
    }
    for (const level of step.quantiles ? step.quantiles.named : []) {
        const place = step.quantiles.levels.indexOf(level);
        found[`q${level}`] = named((v, t, k) => step.quantiles.shifts.map((own) => v + own[t][k] * unit(k)).sort((a, b) => a - b)[place]);
    }
};
