/* Series: scaled numbers of the last steps, and the steps after them in the units of the data. */

const LEVELS = { none: [(y) => y, (y) => y], log: [Math.log, Math.exp], log1p: [Math.log1p, Math.expm1] };

STEPS.series = (values, step) => {
    const given = values[step.from], columns = Array.isArray(given) ? [given] : step.columns.map((name) => given[name]);
    const [toLevel] = LEVELS[step.transform], { lag, targets } = step, needed = step.look_back + lag, count = columns[0].length;
    if (count < needed) throw new Error(`expected at least ${needed} numbers, got ${count}`);
    const numbers = columns.map((own, c) => own.map((v) => (v === null ? NaN : c < targets ? toLevel(v) : v)));
    values.levels = Array.from({ length: lag }, (_, t) => numbers.slice(0, targets).map((own) => own[count - lag + t]));
    const z = numbers.map((own, c) => {
        const differences = c < targets && lag ? own.map((v, t) => (t < lag ? NaN : v - own[t - lag])) : own;
        let before = 0;
        return differences.map((v) => (before = Number.isNaN(v) ? before : (v - step.mean[c]) / step.spread[c]));
    });
    values[step.to] = Array.from({ length: step.look_back }, (_, t) => z.map((own) => own[count - step.look_back + t]));
};

AFTER["steps ahead"] = (found, step) => {
    const { dims, data } = found.values.ahead, [horizon, , targets] = dims, [, fromLevel] = LEVELS[step.transform];
    const levels = step.targets.map((_, k) => {
        const own = [];
        for (let t = 0; t < horizon; t++) {
            const back = !step.lag ? 0 : t < step.lag ? found.values.levels[t][k] : own[t - step.lag];
            own.push(data[t * targets + k] * step.spread[k] + step.mean[k] + back);
        }
        return own;
    });
    const named = (change) => Object.fromEntries(step.targets.map((name, k) => [name, levels[k].map((v, t) => fromLevel(change(v, t, k)))]));
    found.value = named((v) => v);
    if (step.widening) {
        found.low = named((v, t, k) => Math.min(v - step.widening[t][k], v));
        found.high = named((v, t, k) => Math.max(v + step.widening[t][k], v));
    }
};
