/* Beam search over the graph `step`, whose state goes in and comes out; of width 1 it takes the most
   probable word at each step. */

const divisor = (step, words) => (step.penalty === "wu" ? (5 + words) / 6 : words) ** step.alpha;
const rowsOf = (own, order) => gather(own, whole(order), 0);

function searched(step, begun, limit) {
    const { width, end } = step, ended = [];
    let states = begun, beams = [{ words: [], looked: [] }], scores = [0], words = [step.start];
    for (let number = 1; number <= limit; number++) {
        const found = runGraph(GRAPHS.step, { word: whole(words), ...states });
        const { dims, data } = found.log_probabilities, totals = [];
        for (const name of Object.keys(found)) if (name.startsWith("next_")) states = { ...states, [name.slice(5)]: found[name] };
        scores.forEach((score, parent) => {
            const log = data.subarray(parent * dims[1], (parent + 1) * dims[1]);
            const best = [...log.keys()].sort((a, b) => log[b] - log[a] || a - b).slice(0, width + 1);
            for (const word of best) totals.push({ total: score + Math.min(log[word], 0), parent, word });
        });
        totals.sort((a, b) => b.total - a.total || 0);
        const looked = (parent) => (found.alignment ? [...found.alignment.data.subarray(parent * found.alignment.dims[1], (parent + 1) * found.alignment.dims[1])] : []);
        const longer = ({ parent, word }) => ({ words: [...beams[parent].words, word], looked: [...beams[parent].looked, looked(parent)] });
        const over = totals.map(({ word }) => word === end || number === limit);
        totals.slice(0, width).forEach((own, k) => {
            if (over[k] && own.total > -Infinity) ended.push({ score: own.total / divisor(step, number), ...longer(own) });
        });
        if (width === 1 && over[0]) break;
        const going = totals.filter((own, k) => !over[k] && own.total > -Infinity).slice(0, width);
        if (!going.length || (ended.length && Math.max(...ended.map((own) => own.score)) >= going[0].total / divisor(step, limit))) break;
        scores = going.map(({ total }) => total);
        words = going.map(({ word }) => word);
        beams = going.map(longer);
        states = Object.fromEntries(Object.entries(states).map(([name, own]) => [name, rowsOf(own, going.map(({ parent }) => parent))]));
    }
    const best = ended.reduce((a, b) => (b.score > a.score ? b : a));
    return best.words[best.words.length - 1] === end ? { ...best, words: best.words.slice(0, -1) } : best;
}

AFTER.search = (found, step) => {
    const steps = typeof step.steps === "number" ? step.steps : found.values[step.steps];
    Object.assign(found, { text: "", tokens: [], looked: [] });
    if (!steps) return;
    const begun = {};
    for (const [name] of GRAPHS.step.inputs) if (name in found.values) begun[name] = found.values[name];
    if ("lengths" in begun) begun.lengths = whole([steps]);
    const { words, looked } = searched(step, begun, Math.floor(steps * step.factor) + step.extra + 1);
    found.tokens = words.map((word) => step.vocabulary[word]);
    found.text = joined(found.tokens, step);
    found.looked = looked;
};

STEPS.scale = (values, step) => {
    values[step.to] = vectorsOf(values[step.from], step.mean.length).map((row) => row.map((v, k) => (v - step.mean[k]) / step.spread[k]));
};
