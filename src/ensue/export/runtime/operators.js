/* The table of operators: each takes its inputs and attributes and gives its output, or a list. */

/* Windows of a convolution or a pooling: f gets an output's place and calls `visit` for each
   element of x under the window. */
function windows(x, kernel, own) {
    const [rows, channels, ...space] = x.dims, rank = kernel.length;
    const steps = own.strides || kernel.map(() => 1), gaps = own.dilations || kernel.map(() => 1);
    const reach = kernel.map((size, k) => (size - 1) * gaps[k] + 1);
    let pads = own.pads || kernel.map(() => 0).concat(kernel.map(() => 0));
    if (own.auto_pad && own.auto_pad.startsWith("SAME")) {
        const missing = space.map((size, k) => Math.max(0, (Math.ceil(size / steps[k]) - 1) * steps[k] + reach[k] - size));
        const before = missing.map((m) => (own.auto_pad === "SAME_UPPER" ? Math.floor(m / 2) : Math.ceil(m / 2)));
        pads = [...before, ...missing.map((m, k) => m - before[k])];
    }
    const round = own.ceil_mode ? Math.ceil : Math.floor;
    const out = space.map((size, k) => round((size + pads[k] + pads[k + rank] - reach[k]) / steps[k]) + 1);
    const moves = strides(space), inside = [];
    walk(out, [out.map(() => 0)], (n) => {
        const place = strides(out).map((step, k) => Math.floor(n / step) % out[k]), found = [];
        walk(kernel, [kernel.map(() => 0)], (m) => {
            const shift = strides(kernel).map((step, k) => Math.floor(m / step) % kernel[k]);
            const where = place.map((p, k) => p * steps[k] + shift[k] * gaps[k] - pads[k]);
            if (where.every((v, k) => v >= 0 && v < space[k])) found.push([m, where.reduce((s, v, k) => s + v * moves[k], 0)]);
        });
        inside.push(found);
    });
    return { rows, channels, size: volume(space), out, inside };
}

function convolution(x, w, b, own) {
    const kernel = w.dims.slice(2), { rows, channels, size, out, inside } = windows(x, kernel, own);
    const groups = own.group || 1, filters = w.dims[0], per = w.dims[1], reach = volume(kernel);
    const found = zeros([rows, filters, ...out], x), count = inside.length;
    for (let row = 0; row < rows; row++)
        for (let f = 0; f < filters; f++) {
            const first = Math.floor(f / (filters / groups)) * per;
            for (let n = 0; n < count; n++) {
                let total = b ? b.data[f] : 0;
                for (let c = 0; c < per; c++) {
                    const from = (row * channels + first + c) * size, weights = (f * per + c) * reach;
                    for (const [m, place] of inside[n]) total += w.data[weights + m] * x.data[from + place];
                }
                found.data[(row * filters + f) * count + n] = total;
            }
        }
    return found;
}

function pooled(x, own, f) {
    const { rows, channels, size, out, inside } = windows(x, own.kernel_shape, own);
    const found = zeros([rows, channels, ...out], x), count = inside.length, full = volume(own.kernel_shape);
    for (let plane = 0; plane < rows * channels; plane++)
        for (let n = 0; n < count; n++)
            found.data[plane * count + n] = f(inside[n].map(([, place]) => x.data[plane * size + place]), full);
    return found;
}

function gemm(a, b, c, { alpha = 1, beta = 1, transA, transB }) {
    let found = matmul(transA ? transpose(a) : a, transB ? transpose(b) : b);
    if (alpha !== 1) found = each((v) => alpha * v)(found);
    return c ? pairwise((x, y) => x + beta * y)(found, c) : found;
}

function einsum(equation, all) {
    const [given, out] = equation.replaceAll(" ", "").split("->"), names = given.split(","), sizes = {};
    names.forEach((own, k) => [...own].forEach((letter, d) => { sizes[letter] = all[k].dims[d]; }));
    const summed = Object.keys(sizes).filter((letter) => !out.includes(letter)), order = [...out, ...summed];
    const steps = all.map((own, k) => order.map((letter) => (names[k].includes(letter) ? strides(own.dims)[names[k].indexOf(letter)] : 0)));
    const found = tensor([...out].map((letter) => sizes[letter]), new Float64Array(volume([...out].map((letter) => sizes[letter]))));
    const inner = volume(summed.map((letter) => sizes[letter]));
    walk(order.map((letter) => sizes[letter]), steps, (n, o) => {
        found.data[Math.floor(n / inner)] += all.reduce((product, own, k) => product * own.data[o[k]], 1);
    });
    return tensor(found.dims, Float32Array.from(found.data));
}

function topK(a, k, { axis = -1, largest = 1 }) {
    const d = at(axis, a.dims.length), size = a.dims[d], count = k.data[0], inner = volume(a.dims.slice(d + 1));
    const dims = a.dims.map((n, j) => (j === d ? count : n)), values = zeros(dims, a);
    const places = tensor(dims, new Int32Array(volume(dims)));
    for (let n = 0; n < volume(a.dims.slice(0, d)); n++)
        for (let j = 0; j < inner; j++) {
            const own = Array.from({ length: size }, (_, t) => a.data[(n * size + t) * inner + j]);
            const order = own.map((_, t) => t).sort((s, t) => (largest ? own[t] - own[s] : own[s] - own[t]) || s - t);
            for (let t = 0; t < count; t++) {
                values.data[(n * count + t) * inner + j] = own[order[t]];
                places.data[(n * count + t) * inner + j] = order[t];
            }
        }
    return [values, places];
}

function cast(a, kind) {
    const Kind = TYPES[kind];
    if (a.data instanceof Kind) return a;
    return tensor(a.dims, kind === "b" ? Kind.from(a.data, (v) => (v ? 1 : 0)) : Kind.from(a.data, (v) => (kind === "i" ? Math.trunc(v) : v)));
}
const kindOf = (a) => Object.keys(TYPES).find((kind) => a.data instanceof TYPES[kind]);

function where(test, a, b) {
    const dims = broadcast(test.dims, a.dims, b.dims), found = zeros(dims, a);
    walk(dims, [test, a, b].map((own) => spread(own, dims)), (n, o) => {
        found.data[n] = test.data[o[0]] ? a.data[o[1]] : b.data[o[2]];
    });
    return found;
}

function cumulative(a, axis) {
    return alongAxis(a, axis.data[0], (row) => { for (let k = 1; k < row.length; k++) row[k] += row[k - 1]; });
}

function squeezed(a, axes) {
    const named = axes ? listOf(axes).map((axis) => at(axis, a.dims.length)) : null;
    return tensor(a.dims.filter((size, k) => (named ? !named.includes(k) : size !== 1)), a.data);
}

function unsqueezed(a, axes) {
    const rank = a.dims.length + axes.data.length, named = listOf(axes).map((axis) => at(axis, rank));
    const left = [...a.dims];
    return tensor(Array.from({ length: rank }, (_, k) => (named.includes(k) ? 1 : left.shift())), a.data);
}

function batchNormalised(a, [scale, bias, mean, variance], epsilon) {
    const inner = volume(a.dims.slice(2)), channels = a.dims[1];
    return tensor(a.dims, a.data.map((v, n) => {
        const c = Math.floor(n / inner) % channels;
        return (v - mean[c]) / Math.sqrt(variance[c] + epsilon) * scale[c] + bias[c];
    }));
}

function sequenceOf(a, sizes, { axis = 0, keepdims = 1 }) {
    const size = a.dims[at(axis, a.dims.length)], step = sizes ? sizes.data[0] : 1;
    const widths = sizes && sizes.dims.length ? sizes
        : whole(Array.from({ length: Math.ceil(size / step) }, (_, k) => Math.min(step, size - k * step)));
    const found = split(a, widths, { axis }, widths.data.length);
    return sizes || keepdims ? found : found.map((own) => squeezed(own, whole([axis])));
}

const truth = (f) => pairwise((a, b) => (f(a, b) ? 1 : 0), Uint8Array);
const one = (f, Kind) => ([a]) => each(f, Kind)(a);
const two = (f) => ([a, b]) => f(a, b);
const sigmoid = (v) => 1 / (1 + Math.exp(-v));
const softplus = (v) => Math.max(v, 0) + Math.log1p(Math.exp(-Math.abs(v)));

const OPERATORS = {
    Abs: one(Math.abs), Ceil: one(Math.ceil), Cos: one(Math.cos), Erf: one(erf), Exp: one(Math.exp), Floor: one(Math.floor),
    Log: one(Math.log), Neg: one((v) => -v), Reciprocal: one((v) => 1 / v), Relu: one((v) => (v < 0 ? 0 : v)),
    Sigmoid: one(sigmoid), Sign: one(Math.sign), Sin: one(Math.sin), Softplus: one(softplus), Sqrt: one(Math.sqrt), Tanh: one(Math.tanh),
    Not: one((v) => (v ? 0 : 1)), IsNaN: one((v) => (v !== v ? 1 : 0), Uint8Array), IsInf: one((v) => (Math.abs(v) === Infinity ? 1 : 0), Uint8Array),
    Elu: ([a], { alpha = 1 }) => each((v) => (v < 0 ? alpha * Math.expm1(v) : v))(a),
    LeakyRelu: ([a], { alpha = 0.01 }) => each((v) => (v < 0 ? alpha * v : v))(a),
    Gelu: ([a], { approximate }) => each((v) => (approximate === "tanh"
        ? 0.5 * v * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (v + 0.044715 * v ** 3))) : 0.5 * v * (1 + erf(v / Math.SQRT2))))(a),
    Add: two(pairwise((a, b) => a + b)), Sub: two(pairwise((a, b) => a - b)), Mul: two(pairwise((a, b) => a * b)), Div: two(divide),
    Pow: two(pairwise((a, b) => a ** b)), Mod: two(pairwise((a, b) => ((a % b) + b) % b)),
    Min: (all) => several(Math.min)(...all), Max: (all) => several(Math.max)(...all), Sum: (all) => several((a, b) => a + b)(...all),
    And: two(truth((a, b) => a && b)), Or: two(truth((a, b) => a || b)), Xor: two(truth((a, b) => a !== b)),
    Equal: two(truth((a, b) => a === b)), Less: two(truth((a, b) => a < b)), Greater: two(truth((a, b) => a > b)),
    LessOrEqual: two(truth((a, b) => a <= b)), GreaterOrEqual: two(truth((a, b) => a >= b)),
    Clip: ([a, low, high]) => each((v) => Math.min(high ? high.data[0] : Infinity, Math.max(low ? low.data[0] : -Infinity, v)))(a),
    Where: ([test, a, b]) => where(test, a, b),
    Cast: ([a], { to }) => cast(a, KINDS[to]), CastLike: ([a, b]) => cast(a, kindOf(b)), Identity: ([a]) => a,
    Shape: ([a], { start = 0, end }) => whole(a.dims.slice(start, end)), Size: ([a]) => tensor([], Int32Array.of(a.data.length)),
    Reshape: ([a, shape], own) => reshape(a, shape, own), Expand: ([a, shape]) => expand(a, shape),
    Flatten: ([a], { axis = 1 }) => tensor([volume(a.dims.slice(0, at(axis, a.dims.length))), volume(a.dims.slice(at(axis, a.dims.length)))], a.data),
    Squeeze: ([a, axes]) => squeezed(a, axes), Unsqueeze: ([a, axes]) => unsqueezed(a, axes),
    Transpose: ([a], { perm }) => transpose(a, perm), Slice: ([a, ...rest]) => slice(a, ...rest), Concat: (all, { axis }) => concat(axis, all),
    Split: ([a, sizes], own, count) => split(a, sizes, own, count), Pad: ([a, pads, value, axes]) => pad(a, pads, value, axes),
    Tile: ([a, times]) => listOf(times).reduce((own, n, k) => concat(k, Array(n).fill(own)), a),
    Gather: ([a, index], { axis = 0 }) => gather(a, index, axis), GatherElements: ([a, index], { axis = 0 }) => gatherElements(a, index, axis),
    GatherND: ([a, index], { batch_dims = 0 }) => gatherND(a, index, batch_dims), ScatterND: ([a, index, updates]) => scatterND(a, index, updates),
    Range: ([first, end, step]) => {
        const count = Math.max(0, Math.ceil((end.data[0] - first.data[0]) / step.data[0]));
        return tensor([count], new first.data.constructor(count).map((_, k) => first.data[0] + k * step.data[0]));
    },
    ConstantOfShape: ([shape], { value }) => {
        const dims = listOf(shape), data = new (value ? value.data.constructor : Float32Array)(volume(dims));
        return tensor(dims, value ? data.fill(value.data[0]) : data);
    },
    Einsum: (all, { equation }) => einsum(equation, all),
    MatMul: two(matmul), Gemm: ([a, b, c], own) => gemm(a, b, c, own),
    Conv: ([x, w, b], own) => convolution(x, w, b, own),
    MaxPool: ([x], own) => pooled(x, own, greatest),
    AveragePool: ([x], own) => pooled(x, own, (v, full) => sum(v) / (own.count_include_pad ? full : v.length)),
    ReduceSum: reducing(sum), ReduceMean: reducing((v) => sum(v) / v.length), ReduceMax: reducing(greatest), ReduceMin: reducing(least),
    ReduceProd: reducing((v) => v.reduce((a, b) => a * b, 1)),
    ReduceL2: reducing((v) => Math.sqrt(v.reduce((a, b) => a + b * b, 0))), ReduceSumSquare: reducing((v) => v.reduce((a, b) => a + b * b, 0)),
    ReduceLogSumExp: reducing((v) => { const top = greatest(v); return top + Math.log(v.reduce((a, b) => a + Math.exp(b - top), 0)); }),
    Softmax: ([a], { axis = -1 }) => alongAxis(a, axis, softmax), LogSoftmax: ([a], { axis = -1 }) => alongAxis(a, axis, logSoftmax),
    LayerNormalization: ([a, scale, bias], own) => normalised(a, scale, bias, own),
    ArgMax: ([a], own) => argmax(a, own), TopK: ([a, k], own) => topK(a, k, own), CumSum: ([a, axis]) => cumulative(a, axis),
    Trilu: ([a, k], { upper = 1 }) => trilu(a, k, upper),
    BatchNormalization: ([a, ...rest], { epsilon = 1e-5 }) => batchNormalised(a, rest.map((own) => own.data), epsilon),
    SplitToSequence: ([a, sizes], own) => ({ sequence: sequenceOf(a, sizes, own) }),
    SequenceAt: ([{ sequence }, place]) => sequence[at(place.data[0], sequence.length)],
    Recurrence: (given, own, count, graph) => recurrence(given, own, graph),
};

/* A cell over x (time, batch, input), row by row; `graph.seen` keeps what the first row had inside. */
function recurrence([x, ...rest], own, graph) {
    const cell = graph.cells[own.cell], [time, batch, input] = x.dims, parts = rest.slice(0, own.states);
    const lengths = own.with_lengths ? rest[own.states] : null;
    const y = tensor([time, batch, cell.OUTPUT], new Float32Array(time * batch * cell.OUTPUT));
    const finals = parts.map((part) => tensor(part.dims, part.data.slice()));
    for (let row = 0; row < batch; row++) {
        const steps = lengths ? Math.min(time, lengths.data[row]) : time;
        const place = (t) => (own.reverse ? steps - 1 - t : t) * batch + row;
        const given = new Float32Array(steps * input), found = new Float32Array(steps * cell.OUTPUT);
        const seen = new Float32Array(steps * cell.SEEN), state = new Float32Array(cell.STATE);
        for (let t = 0; t < steps; t++) given.set(x.data.subarray(place(t) * input, (place(t) + 1) * input), t * input);
        let from = 0;
        for (const part of finals) {
            const width = part.dims[1];
            state.set(part.data.subarray(row * width, (row + 1) * width), from);
            from += width;
        }
        cell.run(given, steps, state, found, seen);
        for (let t = 0; t < steps; t++) y.data.set(found.subarray(t * cell.OUTPUT, (t + 1) * cell.OUTPUT), place(t) * cell.OUTPUT);
        from = 0;
        for (const part of finals) {
            const width = part.dims[1];
            part.data.set(state.subarray(from, from + width), row * width);
            from += width;
        }
        if (!row) graph.seen.push({ cell, steps, values: seen, reverse: Boolean(own.reverse) });
    }
    return [y, ...finals];
}

/* The outputs of a graph, by name, of inputs {name: tensor}. */
export function runGraph(graph, given) {
    const values = [...graph.constants];
    graph.seen = [];
    graph.inputs.forEach(([, number], k) => { values[number] = given[graph.inputs[k][0]]; });
    for (const [name, inputs, outputs, own] of graph.nodes) {
        const found = OPERATORS[name](inputs.map((n) => (n < 0 ? undefined : values[n])), own, outputs.length, graph);
        if (Array.isArray(found)) outputs.forEach((n, k) => { if (n >= 0) values[n] = found[k]; });
        else values[outputs[0]] = found;
    }
    return Object.fromEntries(graph.outputs.map(([name, number]) => [name, values[number]]));
}
