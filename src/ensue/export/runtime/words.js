/* What the spelling of a word tells: its letters, beginnings, endings and shape. */

const isDigit = (sign, others) => /\p{Nd}/u.test(sign) || others.includes(sign);

/* The kinds of letters in order, a run of one kind cut to two. */
function shapeOfWord(letters, others) {
    const kinds = letters.map((own) => (isDigit(own, others) ? "d" : /\p{L}/u.test(own) ? (/\p{Uppercase}/u.test(own) ? "X" : "x") : own));
    return kinds.filter((own, k) => k < 2 || own !== kinds[k - 1] || own !== kinds[k - 2]).join("");
}

/* Whether a word is in capitals, small letters, or a title: as Python says. */
function casing(letters) {
    let upper = true, lower = true, title = true, cased = false, before = false;
    for (const own of letters) {
        const isUpper = /\p{Uppercase}/u.test(own), isTitle = /\p{Lt}/u.test(own), isLower = /\p{Lowercase}/u.test(own);
        if (isLower || isTitle) upper = false;
        if (isUpper || isTitle) lower = false;
        if (isUpper || isTitle) { if (before) title = false; before = cased = true; }
        else if (isLower) { if (!before) title = false; before = cased = true; }
        else before = false;
    }
    return { upper: cased && upper, lower: cased && lower, title: cased && title };
}

function caseFeatures(letters, others) {
    const { upper, lower, title } = casing(letters), digits = letters.filter((own) => isDigit(own, others)).length;
    return [...(upper ? ["capitals"] : []), ...(title ? ["title"] : []), ...(lower ? ["small"] : []),
        ...(digits ? [digits === letters.length ? "digits" : "digit"] : [])];
}

const FEATURES = {
    own: (word, others) => {
        const letters = [...word], lower = [...word.toLowerCase()], found = ["always", `word ${word}`, `lower ${lower.join("")}`];
        for (const size of [1, 2, 3, 4])
            if (lower.length > size) found.push(`ends ${lower.slice(-size).join("")}`, `begins ${lower.slice(0, size).join("")}`);
        return [...found, `shape ${shapeOfWord(letters, others)}`, ...caseFeatures(letters, others)];
    },
    near: (word, others) => {
        const letters = [...word], lower = [...word.toLowerCase()];
        return [`lower ${lower.join("")}`, `ends ${lower.slice(-3).join("")}`, `shape ${shapeOfWord(letters, others)}`, ...caseFeatures(letters, others)];
    },
    far: (word, others) => [`lower ${word.toLowerCase()}`, `shape ${shapeOfWord([...word], others)}`],
};

function tableOf(step, name, vocabulary) {
    if (!TABLES.has(step)) TABLES.set(step, {});
    const tables = TABLES.get(step);
    tables[name] ??= new Map(vocabulary.map((token, number) => [token, number === 0 ? 1 : number]));
    return (token) => tables[name].get(token) ?? 1;
}

const STRETCH = patternOf("[^\\s]+", "gu");
function folded(word, step) {
    let own = word.normalize("NFC");
    if (step.lower) own = own.toLowerCase();
    if (step.numbers === "digit") own = own.replace(/\p{Nd}/gu, "0");
    const parts = own.match(STRETCH) || [];
    if (parts.length !== 1) return own;
    return step.numbers === "tag" && /^\p{Nd}+(?:[.,]\p{Nd}+)*$/u.test(parts[0]) ? "<number>" : parts[0];
}

STEPS["word parts"] = (values, step) => {
    const tokens = values[step.from], number = (name) => tableOf(step, name, step[name]);
    values.words = tokens.map((token) => number("words")(folded(token, step)));
    if (step.letters) {
        const distinct = [...new Set(tokens)], spelled = distinct.map((token) => [...token].map(number("letters")));
        const most = Math.max(0, ...spelled.map((own) => own.length));
        values.characters = Array.from({ length: most }, (_, k) => spelled.map((own) => own[k] ?? 0));
        values.characters_lengths = spelled.map((own) => own.length);
        values.characters_index = tokens.map((token) => distinct.indexOf(token));
    }
    const affixes = (name, cutOf) => tokens.map((token) => {
        const letters = [...token];
        return Array.from({ length: step.affixes }, (_, k) => (k < letters.length ? number(name)(cutOf(letters, k + 1).join("")) : 0));
    });
    if (step.prefixes) values.prefix = affixes("prefixes", (letters, n) => letters.slice(0, n));
    if (step.suffixes) values.suffix = affixes("suffixes", (letters, n) => letters.slice(-n));
    if (step.shapes) values.shape = tokens.map((token) => number("shapes")(shapeOfWord([...token], step.digits)));
};

STEPS["chain features"] = (values, step) => {
    const tokens = values[step.from], rows = tokens.map(() => []);
    let begin = 1;
    step.offsets.forEach((offset, k) => {
        const kind = step.kinds[k], vocabulary = step.known[kind], number = tableOf(step, kind, vocabulary);
        rows.forEach((row, t) => {
            const place = t + offset;
            if (place < 0) row.push(begin + vocabulary.length);
            else if (place >= tokens.length) row.push(begin + vocabulary.length + 1);
            else FEATURES[kind](tokens[place], step.digits).map(number).forEach((n) => { if (n !== 1) row.push(begin + n); });
        });
        begin += vocabulary.length + 2;
    });
    const most = Math.max(0, ...rows.map((row) => row.length));
    values[step.to] = rows.map((row) => [...row, ...new Array(most - row.length).fill(0)]);
};
