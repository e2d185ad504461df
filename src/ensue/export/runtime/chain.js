/* Chains of labels: the best one by Viterbi, and the probability of each label at each step. */

function logSumExp(values) {
    const top = Math.max(...values);
    return top + Math.log(values.reduce((sum, v) => sum + Math.exp(v - top), 0));
}

function bestChain(e, { first, follow, last }) {
    const labels = first.length, back = [];
    let alpha = e[0].map((v, l) => v + first[l]);
    for (let t = 1; t < e.length; t++) {
        const from = [], next = [];
        for (let l = 0; l < labels; l++) {
            let top = -Infinity, place = 0;
            for (let k = 0; k < labels; k++) if (alpha[k] + follow[k][l] > top) { top = alpha[k] + follow[k][l]; place = k; }
            from.push(place);
            next.push(top + e[t][l]);
        }
        back.push(from);
        alpha = next;
    }
    const ends = alpha.map((v, l) => v + last[l]), path = [ends.indexOf(Math.max(...ends))];
    for (let t = back.length - 1; t >= 0; t--) path.unshift(back[t][path[0]]);
    return path;
}

function chainMarginals(e, { first, follow, last }) {
    const labels = [...first.keys()], ahead = [e[0].map((v, l) => v + first[l])], behind = [last.slice()];
    for (let t = 1; t < e.length; t++) ahead.push(labels.map((l) => e[t][l] + logSumExp(labels.map((k) => ahead[t - 1][k] + follow[k][l]))));
    for (let t = e.length - 1; t > 0; t--) behind.unshift(labels.map((k) => logSumExp(labels.map((l) => follow[k][l] + e[t][l] + behind[0][l]))));
    const total = logSumExp(labels.map((l) => ahead[e.length - 1][l] + last[l]));
    return e.map((_, t) => labels.map((l) => Math.exp(ahead[t][l] + behind[t][l] - total)));
}

const without = (e, outside) => (outside ? e.map((row) => row.map((v, l) => (l === outside[0] ? v - outside[1] : v))) : e);

AFTER.chain = (found, step) => {
    const { dims, data } = found.values.scores, [members, time, , labels] = dims, steps = found.values.lengths;
    const rows = step.chains.map((_, m) => Array.from({ length: steps }, (_, t) => [...data.subarray((m * time + t) * labels, (m * time + t + 1) * labels)]));
    const each = rows.map((e, m) => {
        if (!steps) return [];
        if (step.marginals) return chainMarginals(e, step.chains[m]);
        return e.map((row) => { const total = logSumExp(row); return row.map((v) => Math.exp(v - total)); });
    });
    const mean = Array.from({ length: steps }, (_, t) => step.labels.map((_, l) => each.reduce((sum, own) => sum + own[t][l], 0) / members));
    const best = !steps ? [] : members === 1 ? bestChain(without(rows[0], step.outside), step.chains[0]) : mean.map((row) => row.indexOf(Math.max(...row)));
    found.tokens = found.values.tokens || [];
    found.labels = best.map((l) => step.labels[l]);
    found.probabilities = best.map((l, t) => mean[t][l]);
    found.all = mean;
};
