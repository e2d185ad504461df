/* What a question may be. White space and numbers are those of Python: a text is cut, and a number read, as in training. */
const SPACE = String.raw`\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000`, LARGEST = 1e30;
/* A pattern whose white space is Python's; \s stands inside of brackets. */
const patternOf = (source, flags) => new RegExp(source.replaceAll("\\s", SPACE), flags);
const OUTER_SPACE = patternOf("^[\\s]+|[\\s]+$", "g"), NUMBER = /^[\t-\r\x1c- ]*([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)[\t-\r\x1c- ]*$/i;
const stripped = (text) => text.replace(OUTER_SPACE, "");
const isRow = (own) => typeof own === "object" && own !== null && !Array.isArray(own) && !ArrayBuffer.isView(own);
const isList = (own) => Array.isArray(own) || ArrayBuffer.isView(own);

/* What was given, as far as it is short. */
function quoted(own) {
    const text = (typeof own === "number" ? String(own) : JSON.stringify(own)) ?? String(own);
    return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}

function refused(expected, own, where = "") {
    return new Error(`expected ${expected}, got ${quoted(own)}${where}`);
}

/* The finite number that a value is, or that a text writes as every language does; else NaN. */
function finiteNumber(own) {
    const number = typeof own === "string" ? Number(NUMBER.exec(own)?.[1] ?? NaN) : own;
    return typeof number === "number" && Math.abs(number) <= LARGEST ? number : NaN;
}

/* A text, or a list of its tokens; of a row by column name, its text. */
function textOrTokens(given, { column }) {
    if (isRow(given) && column !== undefined) {
        if (!(column in given)) throw new Error(`expected a text, or a row with the column ${column}`);
        given = given[column];
    }
    if (isRow(given)) throw new Error(`expected a text, got a row of columns, ${quoted(given)}`);
    if (typeof given === "string" || (Array.isArray(given) && given.every((token) => typeof token === "string"))) return given;
    throw refused("a text, or a list of its tokens", given);
}

/* Steps of `width` numbers each; of one number a step, they may stand in one list. */
function vectorsOf(given, width) {
    const wanted = `a list of steps, ${width} number${width > 1 ? "s" : ""} each`;
    if (!isList(given) || !given.length) throw refused(wanted, given);
    return Array.from(given, (own, k) => {
        const row = isList(own) || width > 1 ? own : [own];
        if (!isList(row) || row.length !== width) throw refused(wanted, own, ` at step ${k + 1}`);
        for (const value of row) if (typeof value !== "number" || Number.isNaN(finiteNumber(value))) throw refused("finite numbers, at most 1e+30", own, ` at step ${k + 1}`);
        return row;
    });
}
