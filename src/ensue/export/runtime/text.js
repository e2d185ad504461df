/* Steps before the network: from a question to the values of its inputs. Each reads and writes
   values by name. */

function cut(found, { max_length: most, cut: side }) {
    if (most === null || found.length <= most) return found;
    return side === "end" ? found.slice(0, most) : found.slice(found.length - most);
}

const BREAK = patternOf("<br[\\s]*/?>", "gi");
function prepared(text, how) {
    if (how.nfc) text = text.normalize("NFC");
    if (how.breaks === "space") text = text.replace(BREAK, (found) => " ".repeat(found.length));
    if (how.lower) text = text.toLowerCase();
    return how.numbers === "digit" ? text.replace(/\p{Nd}/gu, "0") : text;
}

function tokenise(text, how) {
    text = textOrTokens(text, how);
    if (Array.isArray(text)) return text;
    if (how.merges) return cut(subwords(prepared(text, how), how), how);
    let found = prepared(text, how).match(patternOf(how.javascript, how.flags)) || [];
    if (how.numbers === "tag")
        found = found.map((own) => (/^\p{Nd}+(?:[.,]\p{Nd}+)*$/u.test(own) ? "<number>" : own));
    return cut(found, how);
}

/* One text; of subwords, the sign that begins a word is a space. */
const joined = (tokens, { between, word }) =>
    (word ? tokens.slice(0, 1).join("").replaceAll(word, "") + tokens.slice(1).join("").replaceAll(word, " ") : tokens.join(between));

const TABLES = new Map();
function numbersOf(step) {
    if (!TABLES.has(step)) {
        const numbers = new Map(step.vocabulary.map((token, number) => [token, number]));
        numbers.set(step.vocabulary[0], 1);
        TABLES.set(step, numbers);
    }
    return TABLES.get(step);
}
const lookUp = (token, step) => numbersOf(step).get(token) ?? 1;

const STEPS = {
    tokenise: (values, step) => { values[step.to] = tokenise(values[step.from], step); },
    join: (values, step) => { values[step.to] = joined(values[step.from], step); },
    "look up": (values, step) => { values[step.to] = values[step.from].map((token) => lookUp(token, step)); },
    cut: (values, step) => { values[step.to] = cut(values[step.from], step); },
    count: (values, step) => { values[step.to] = values[step.from].length; },
    vectors: (values, step) => { values[step.to] = vectorsOf(values[step.from], step.width); },
    pair: (values, step) => {
        const texts = values[step.from];
        if (!Array.isArray(texts) || texts.length !== 2) throw refused('two texts, ["one", "another"]', texts);
        [values[step.to[0]], values[step.to[1]]] = texts;
    },
};
