/* Piece by piece: the states that come out go in again, and each answer is to all that was read. */
STEPS.stream = (values, step) => { Object.assign(values, step.states); };

export function stream() {
    const name = Object.keys(MODEL.graphs)[0], step = MODEL.before.find((own) => own.step === "stream"), joined = {};
    let read = [], states = {};
    const feed = (piece) => {
        const fresh = valuesOf(piece), values = valuesOf(read = [...read, ...(fresh.tokens ?? piece)]);
        for (const own of step.pieces) if (own in fresh) values[own] = fresh[own];
        const outputs = runGraph(GRAPHS[name], { ...inputsOf(values, name), ...states });
        states = Object.fromEntries(Object.keys(step.states).map((own) => [own, outputs[`next_${own}`]]));
        for (const own of step.joined) {
            const { dims: [members, time, rows, labels], data } = outputs[own], before = joined[own] ?? { dims: [members, 0, rows, labels], data: [] }, all = [];
            for (let m = 0; m < members; m++) {
                const size = before.dims[1] * labels;
                all.push(...before.data.slice(m * size, (m + 1) * size), ...data.slice(m * time * labels, (m * time + fresh.lengths) * labels));
            }
            values.lengths = before.dims[1] + fresh.lengths;
            outputs[own] = joined[own] = tensor([members, values.lengths, rows, labels], Float32Array.from(all));
        }
        const found = { values: Object.assign(values, outputs), seen: GRAPHS[name].seen };
        for (const own of MODEL.after) AFTER[own.step](found, own);
        return found;
    };
    return { feed };
}
