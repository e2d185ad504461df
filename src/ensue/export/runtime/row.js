/* A row of a table: numbers scaled, categories looked up, dates read. A cell may be a text or a number. */
const DATE_PARTS = { scaled: (ms) => ms / DAY, month: (ms) => new Date(ms).getUTCMonth() + 1, weekday: (ms) => weekdayOf(ms) };
const ZONED = /^(\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*?) ?(?:Z|[+-]\d\d:?\d\d)$/;

function finiteCell(text, name) {
    const found = finiteNumber(text);
    if (Number.isNaN(found)) throw new Error(`column ${name}: expected a finite number, at most 1e+30, got ${text || "nothing"}`);
    return found;
}

function featureCell(text, { name, how, reads }) {
    if (!reads) return finiteCell(text, name);
    const { dates, moments } = readTimes([how === "scaled" ? text : text.replace(ZONED, "$1")], reads);
    if (!dates) throw new Error(`column ${name}: expected a date, got ${text}`);
    return DATE_PARTS[how](moments[0]);
}

STEPS.row = (values, step) => {
    const row = values[step.from], numbers = [], categories = [];
    if (!isRow(row)) throw refused('a row, {"column": "value"}', row);
    const given = (name) => {
        if (!Object.hasOwn(row, name)) throw new Error(`there is no column ${name}, which the model was trained with`);
        return row[name] ?? null;
    };
    const cell = (name) => {
        const own = given(name);
        if (typeof own === "object" && own !== null) throw new Error(`column ${name}: expected a text, a number or a date, got ${quoted(own)}`);
        return own === null || own !== own ? "" : stripped(String(own));
    };
    if (step.text) values[step.text.to] = given(step.text.name);
    for (const { name, mean, spread, indicator } of step.numbers) {
        const text = cell(name), gone = step.missing.includes(text.toLowerCase());
        numbers.push(gone && step.gaps ? 0 : (finiteCell(text, name) - mean) / spread);
        if (indicator) numbers.push(gone ? 1 : 0);
    }
    for (const { name, categories: known } of step.categories) {
        const text = cell(name);
        if (!text && !step.gaps) throw new Error(`column ${name}: expected a value, got nothing`);
        categories.push(known.indexOf(text) + 1);
    }
    Object.assign(values, { numbers, categories, feature_gone: [] });
    for (const own of step.features) {
        const text = cell(own.name), gone = step.missing.includes(text.toLowerCase());
        if (gone && !step.gaps) throw new Error(`column ${own.name}: expected a value, got nothing`);
        (values[own.to] ??= []).push(gone ? 0 : (featureCell(text, own) - own.mean) / own.spread);
        values.feature_gone.push(gone ? 1 : 0);
    }
};
