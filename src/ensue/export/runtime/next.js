/* What comes next: the surprise of every word, and the most probable words to come. */

STEPS.begin = (values, step) => {
    values[step.to] = [step.first, ...values[step.from]];
    Object.assign(values, step.states);
};

/* The most probable words of a row of log p, without those that are never said. */
function mostProbable(row, step, count) {
    const log = Float64Array.from(row);
    for (const k of step.never) log[k] = -Infinity;
    softmax(log);
    log[step.end] = 0;
    const order = [...log.keys()].sort((a, b) => log[b] - log[a] || a - b).slice(0, count);
    return order.filter((k) => log[k] > 0).map((k) => [step.vocabulary[k], log[k]]);
}

AFTER.surprise = (found, step) => {
    const { dims, data } = found.values.log_probabilities, words = dims[2], wanted = [...found.values.said, step.end];
    found.tokens = [...found.values.tokens, step.ends];
    found.bits = wanted.map((word, t) => -data[t * words + word] / Math.LN2);
    found.next = Object.fromEntries(mostProbable(data.subarray((dims[0] - 1) * words), step, 5));
};

/* The text with `count` more words, each drawn by its probability; temperature 0 takes the most
   probable. Fed one at a time: the state goes in and comes out. */
export function wordsAfter(text, count, temperature = 0, random = Math.random) {
    const [name] = Object.keys(MODEL.graphs), [step] = MODEL.after, values = valuesOf(text), written = [...values.tokens];
    let given = inputsOf(values, name);
    for (let k = 0; k < count; k++) {
        const found = runGraph(GRAPHS[name], given), { dims, data } = found.log_probabilities;
        const log = Float64Array.from(data.subarray((dims[0] - 1) * dims[2]), (v) => (temperature ? v / temperature : v));
        for (const word of step.never) log[word] = -Infinity;
        let word = log.indexOf(greatest(log));
        if (temperature) {
            softmax(log);
            let left = random();
            word = log.findIndex((p) => (left -= p) < 0);
        }
        if (word === step.end || word < 0) break;
        written.push(step.vocabulary[word]);
        given = { words: tensor([1, 1], Int32Array.of(word)) };
        for (const own of Object.keys(found)) if (own.startsWith("next_")) given[own.slice(5)] = found[own];
    }
    return joined(written, step);
}
