/* From a question to its answer: the steps before, the network, the steps after. */

function shapeOf(value) {
    return Array.isArray(value) || ArrayBuffer.isView(value) ? [value.length, ...(value.length ? shapeOf(value[0]) : [])] : [];
}

/* A value as an input of a network: a row of its own on the batch axis; no free axis is empty
   but what grows from nothing. */
function inputOf(value, axes, isWhole) {
    const shape = shapeOf(value), free = axes.filter((axis) => axis !== "batch");
    const sizes = free.map((axis, k) => (typeof axis === "number" ? axis : Math.max(axis === "past" ? 0 : 1, shape[k] || 0)));
    const dims = axes.map((axis) => (axis === "batch" ? 1 : sizes[free.indexOf(axis)]));
    const data = new (isWhole ? Int32Array : Float32Array)(volume(dims)), own = strides(sizes);
    const put = (given, depth, place) => {
        if (depth === free.length) data[place] = given;
        else for (let k = 0; k < given.length; k++) put(given[k], depth + 1, place + k * own[depth]);
    };
    put(value, 0, 0);
    return tensor(dims, data);
}

export function valuesOf(question) {
    const values = { question };
    for (const step of MODEL.before) STEPS[step.step](values, step);
    return values;
}

export function inputsOf(values, name) {
    const { inputs, whole } = MODEL.graphs[name];
    return Object.fromEntries(Object.entries(inputs).map(([own, axes]) => [own, inputOf(values[own], axes, whole.includes(own))]));
}

/* The answer to a question; `values`: what was computed on the way to it. */
export function answer(question) {
    const values = valuesOf(question), name = Object.keys(MODEL.graphs)[0];
    Object.assign(values, runGraph(GRAPHS[name], inputsOf(values, name)));
    const found = { values, seen: GRAPHS[name].seen };
    for (const step of MODEL.after) AFTER[step.step](found, step);
    return found;
}

const AFTER = {
    labels: (found, step) => {
        const p = [...found.values.probabilities.data], best = p.indexOf(Math.max(...p));
        found.probabilities = p;
        if (step.several) found.label = step.labels.filter((_, k) => p[k] > step.threshold);
        else if (step.rare !== undefined) found.label = step.labels[p[step.rare] >= step.threshold ? step.rare : 1 - step.rare];
        else found.label = step.labels[best];
    },
    number: (found, step) => {
        for (const name of ["value", "low", "high"]) found[name] = found.values[name].data[0];
        found.share = step.share;
    },
};
