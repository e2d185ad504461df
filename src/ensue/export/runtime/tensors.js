/* Tensors and the operators of ONNX that exported networks are made of.

   A tensor is {dims, data}: Float32Array for real numbers, Int32Array for whole ones, Uint8Array
   for truth. A graph is a list of nodes [operator, inputs, outputs, attributes], run in order. */

const TYPES = { f: Float32Array, i: Int32Array, b: Uint8Array };
const KINDS = { 1: "f", 2: "b", 3: "i", 6: "i", 7: "i", 9: "b", 10: "f", 11: "f", 16: "f" };
const volume = (dims) => dims.reduce((a, b) => a * b, 1);
const tensor = (dims, data) => ({ dims, data });
const zeros = (dims, like) => tensor(dims, new like.data.constructor(volume(dims)));
const whole = (values) => tensor([values.length], Int32Array.from(values));
const listOf = (own) => (own ? [...own.data] : undefined);
const at = (axis, rank) => (axis < 0 ? axis + rank : axis);

function strides(dims) {
    const found = new Array(dims.length);
    for (let k = dims.length - 1, size = 1; k >= 0; k--) { found[k] = size; size *= dims[k]; }
    return found;
}

/* The steps of each axis of `dims` through a tensor that is spread over them. */
function spread(own, dims) {
    const steps = strides(own.dims), skip = dims.length - own.dims.length;
    return dims.map((_, k) => (k < skip || own.dims[k - skip] === 1 ? 0 : steps[k - skip]));
}

function broadcast(...all) {
    const rank = Math.max(...all.map((own) => own.length)), dims = new Array(rank).fill(1);
    for (const own of all)
        own.forEach((size, k) => { if (size !== 1) dims[rank - own.length + k] = size; });
    return dims;
}

/* Calls `put(place, offsets)` for every element of `dims`, in order; steps: one list a tensor. */
function walk(dims, steps, put) {
    const total = volume(dims), index = new Array(dims.length).fill(0), offsets = steps.map(() => 0);
    for (let n = 0; n < total; n++) {
        put(n, offsets);
        for (let k = dims.length - 1; k >= 0; k--) {
            index[k]++;
            for (let s = 0; s < steps.length; s++) offsets[s] += steps[s][k];
            if (index[k] < dims[k]) break;
            for (let s = 0; s < steps.length; s++) offsets[s] -= steps[s][k] * dims[k];
            index[k] = 0;
        }
    }
}

const pairwise = (f, Kind) => (a, b) => {
    const dims = broadcast(a.dims, b.dims), total = volume(dims);
    const data = new (Kind || a.data.constructor)(total), p = a.data, q = b.data;
    if (p.length === total && q.length === total) for (let n = 0; n < total; n++) data[n] = f(p[n], q[n]);
    else if (p.length === total && q.length === 1) for (let n = 0; n < total; n++) data[n] = f(p[n], q[0]);
    else walk(dims, [spread(a, dims), spread(b, dims)], (n, o) => { data[n] = f(p[o[0]], q[o[1]]); });
    return tensor(dims, data);
};
const each = (f, Kind) => (a) => tensor(a.dims, (Kind ? Kind.from(a.data, f) : a.data.map(f)));
const several = (f) => (...all) => all.reduce((a, b) => pairwise(f)(a, b));
const divide = (a, b) => (a.data instanceof Int32Array ? pairwise((x, y) => Math.trunc(x / y)) : pairwise((x, y) => x / y))(a, b);

/* Abramowitz and Stegun would be too coarse: the series near zero, the fraction far from it. */
function erf(x) {
    const z = Math.abs(x);
    if (z > 6) return Math.sign(x);
    if (z < 2.5) {
        let sum = z, term = z;
        for (let n = 1; Math.abs(term) > 1e-17 * sum && n < 200; n++) { term *= -z * z / n; sum += term / (2 * n + 1); }
        return Math.sign(x) * 2 / Math.sqrt(Math.PI) * sum;
    }
    let f = 0;
    for (let n = 60; n > 0; n--) f = n / 2 / (z + f);
    return Math.sign(x) * (1 - Math.exp(-z * z) / Math.sqrt(Math.PI) / (z + f));
}

function matmul(a, b) {
    const one = a.dims.length === 1, other = b.dims.length === 1;
    const p = one ? [1, ...a.dims] : a.dims, q = other ? [...b.dims, 1] : b.dims;
    const [m, k] = p.slice(-2), n = q[q.length - 1];
    const front = broadcast(p.slice(0, -2), q.slice(0, -2)), data = new Float32Array(volume(front) * m * n);
    const steps = [tensor(p.slice(0, -2)), tensor(q.slice(0, -2))].map((own) => spread(own, front));
    const sums = new Float64Array(n), A = a.data, B = b.data;
    walk(front, steps, (number, [i, j]) => {
        for (let row = 0; row < m; row++) {
            sums.fill(0);
            for (let c = 0; c < k; c++) {
                const v = A[(i * m + row) * k + c], from = (j * k + c) * n;
                if (v !== 0) for (let d = 0; d < n; d++) sums[d] += v * B[from + d];
            }
            data.set(sums, (number * m + row) * n);
        }
    });
    const dims = [...front, ...(one ? [] : [m]), ...(other ? [] : [n])];
    return tensor(dims, data);
}

function transpose(a, perm) {
    const order = perm || a.dims.map((_, k) => a.dims.length - 1 - k), own = strides(a.dims);
    const found = zeros(order.map((k) => a.dims[k]), a);
    walk(found.dims, [order.map((k) => own[k])], (n, o) => { found.data[n] = a.data[o[0]]; });
    return found;
}

function reshape(a, shape, { allowzero }) {
    const dims = listOf(shape).map((size, k) => (size === 0 && !allowzero ? a.dims[k] : size));
    const free = dims.indexOf(-1);
    if (free >= 0) dims[free] = a.data.length / Math.max(1, -volume(dims));
    return tensor(dims, a.data);
}

function expand(a, shape) {
    const dims = broadcast(a.dims, listOf(shape)), found = zeros(dims, a);
    walk(dims, [spread(a, dims)], (n, o) => { found.data[n] = a.data[o[0]]; });
    return found;
}

function slice(a, starts, ends, axes, steps) {
    const rank = a.dims.length, first = listOf(starts), last = listOf(ends);
    const named = listOf(axes) || first.map((_, k) => k), step = listOf(steps) || first.map(() => 1);
    const dims = [...a.dims], own = strides(a.dims), moves = [...own];
    let base = 0;
    named.forEach((axis, k) => {
        const d = at(axis, rank), size = a.dims[d], s = step[k];
        const bound = (v, low, high) => Math.max(low, Math.min(high, v < 0 ? v + size : v));
        const [from, to] = s > 0 ? [bound(first[k], 0, size), bound(last[k], 0, size)]
            : [bound(first[k], 0, size - 1), last[k] < -size ? -1 : bound(last[k], -1, size - 1)];
        dims[d] = Math.max(0, Math.ceil((to - from) / s));
        base += from * own[d];
        moves[d] = own[d] * s;
    });
    const found = zeros(dims, a);
    walk(dims, [moves], (n, o) => { found.data[n] = a.data[base + o[0]]; });
    return found;
}

function concat(axis, all) {
    const rank = all[0].dims.length, d = at(axis, rank), dims = [...all[0].dims];
    dims[d] = all.reduce((sum, own) => sum + own.dims[d], 0);
    const found = zeros(dims, all[0]), outer = volume(dims.slice(0, d)), inner = volume(dims.slice(d + 1));
    let begin = 0;
    for (const own of all) {
        const size = own.dims[d] * inner;
        for (let n = 0; n < outer; n++)
            found.data.set(own.data.subarray(n * size, (n + 1) * size), n * dims[d] * inner + begin);
        begin += size;
    }
    return found;
}

function gather(a, index, axis) {
    const d = at(axis, a.dims.length), size = a.dims[d];
    const outer = volume(a.dims.slice(0, d)), inner = volume(a.dims.slice(d + 1)), count = index.data.length;
    const found = zeros([...a.dims.slice(0, d), ...index.dims, ...a.dims.slice(d + 1)], a);
    for (let n = 0; n < outer; n++)
        for (let k = 0; k < count; k++) {
            const from = (n * size + at(index.data[k], size)) * inner;
            found.data.set(a.data.subarray(from, from + inner), (n * count + k) * inner);
        }
    return found;
}

function gatherElements(a, index, axis) {
    const d = at(axis, a.dims.length), own = strides(a.dims), found = zeros(index.dims, a);
    const moves = own.map((step, k) => (k === d ? 0 : step));
    walk(index.dims, [moves], (n, o) => { found.data[n] = a.data[o[0] + at(index.data[n], a.dims[d]) * own[d]]; });
    return found;
}

function gatherND(a, index, batch) {
    const last = index.dims[index.dims.length - 1], own = strides(a.dims);
    const inner = volume(a.dims.slice(batch + last)), rows = volume(index.dims.slice(0, -1));
    const each = rows / Math.max(1, volume(a.dims.slice(0, batch)));
    const found = zeros([...index.dims.slice(0, -1), ...a.dims.slice(batch + last)], a);
    for (let n = 0; n < rows; n++) {
        let from = batch ? Math.floor(n / each) * own[batch - 1] : 0;
        for (let k = 0; k < last; k++) from += at(index.data[n * last + k], a.dims[batch + k]) * own[batch + k];
        found.data.set(a.data.subarray(from, from + inner), n * inner);
    }
    return found;
}

function scatterND(a, index, updates) {
    const last = index.dims[index.dims.length - 1], own = strides(a.dims), found = tensor(a.dims, a.data.slice());
    const inner = volume(a.dims.slice(last)), rows = volume(index.dims.slice(0, -1));
    for (let n = 0; n < rows; n++) {
        let to = 0;
        for (let k = 0; k < last; k++) to += at(index.data[n * last + k], a.dims[k]) * own[k];
        found.data.set(updates.data.subarray(n * inner, (n + 1) * inner), to);
    }
    return found;
}

/* f takes the elements along the axes as one array. */
function reduce(a, axes, keep, f, Kind) {
    const rank = a.dims.length, named = axes && axes.length ? axes.map((axis) => at(axis, rank)) : a.dims.map((_, k) => k);
    const order = [...a.dims.keys()].filter((k) => !named.includes(k));
    const moved = transpose(a, [...order, ...named]), count = volume(named.map((k) => a.dims[k]));
    const dims = a.dims.map((size, k) => (named.includes(k) ? (keep ? 1 : -1) : size)).filter((size) => size >= 0);
    const data = new (Kind || a.data.constructor)(volume(dims));
    for (let n = 0; n < data.length; n++) data[n] = f(moved.data.subarray(n * count, (n + 1) * count));
    return tensor(dims, data);
}
const sum = (v) => { let s = 0; for (let k = 0; k < v.length; k++) s += v[k]; return s; };
const greatest = (v) => { let s = -Infinity; for (let k = 0; k < v.length; k++) if (v[k] > s || v[k] !== v[k]) s = v[k]; return s; };
const least = (v) => { let s = Infinity; for (let k = 0; k < v.length; k++) if (v[k] < s || v[k] !== v[k]) s = v[k]; return s; };
const reducing = (f, Kind) => ([a, axes], own) =>
    own.noop_with_empty_axes && !(axes ? axes.data.length : (own.axes || []).length) ? a
        : reduce(a, axes ? listOf(axes) : own.axes, own.keepdims ?? 1, f, Kind);

/* Rows along one axis, each changed in place. */
function alongAxis(a, axis, change) {
    const d = at(axis, a.dims.length), size = a.dims[d], inner = volume(a.dims.slice(d + 1));
    const found = tensor(a.dims, a.data.slice()), row = new Float64Array(size), outer = volume(a.dims.slice(0, d));
    for (let n = 0; n < outer; n++)
        for (let k = 0; k < inner; k++) {
            const base = n * size * inner + k;
            for (let t = 0; t < size; t++) row[t] = a.data[base + t * inner];
            change(row);
            for (let t = 0; t < size; t++) found.data[base + t * inner] = row[t];
        }
    return found;
}
function softmax(row) {
    const top = greatest(row);
    let total = 0;
    for (let k = 0; k < row.length; k++) total += row[k] = Math.exp(row[k] - top);
    for (let k = 0; k < row.length; k++) row[k] /= total;
}
function logSoftmax(row) {
    const top = greatest(row);
    let total = 0;
    for (let k = 0; k < row.length; k++) total += Math.exp(row[k] - top);
    for (let k = 0; k < row.length; k++) row[k] -= top + Math.log(total);
}

function normalised(a, scale, bias, { axis = -1, epsilon = 1e-5 }) {
    const d = at(axis, a.dims.length), size = volume(a.dims.slice(d)), found = zeros(a.dims, a);
    for (let base = 0; base < a.data.length; base += size) {
        const own = a.data.subarray(base, base + size), mean = sum(own) / size;
        let spreadOf = 0;
        for (let k = 0; k < size; k++) spreadOf += (own[k] - mean) ** 2;
        const by = 1 / Math.sqrt(spreadOf / size + epsilon);
        for (let k = 0; k < size; k++) found.data[base + k] = (own[k] - mean) * by * scale.data[k] + (bias ? bias.data[k] : 0);
    }
    return found;
}

function split(a, sizes, { axis = 0, num_outputs }, count) {
    const d = at(axis, a.dims.length), size = a.dims[d], step = Math.ceil(size / (num_outputs || count));
    const widths = listOf(sizes) || Array.from({ length: num_outputs || count }, (_, k) => Math.min(step, size - k * step));
    let begin = 0;
    return widths.map((width) => {
        const own = slice(a, whole([begin]), whole([begin + width]), whole([d]));
        begin += width;
        return own;
    });
}

function pad(a, pads, value, axes) {
    const rank = a.dims.length, named = listOf(axes) || [...a.dims.keys()], given = listOf(pads);
    const before = new Array(rank).fill(0), after = new Array(rank).fill(0);
    named.forEach((axis, k) => { before[at(axis, rank)] = given[k]; after[at(axis, rank)] = given[k + named.length]; });
    const found = zeros(a.dims.map((size, k) => size + before[k] + after[k]), a);
    if (value) found.data.fill(value.data[0]);
    const to = strides(found.dims), from = strides(a.dims);
    walk(a.dims, [to, from], (n, o) => {
        const base = before.reduce((s, b, k) => s + b * to[k], 0);
        found.data[base + o[0]] = a.data[o[1]];
    });
    return found;
}

function trilu(a, k, upper) {
    const [rows, columns] = a.dims.slice(-2), found = tensor(a.dims, a.data.slice()), by = k ? k.data[0] : 0;
    for (let n = 0; n < a.data.length; n++) {
        const column = n % columns, row = Math.floor(n / columns) % rows;
        if (upper ? column < row + by : column > row + by) found.data[n] = 0;
    }
    return found;
}

function argmax(a, { axis = 0, keepdims = 1 }) {
    return reduce(a, [axis], keepdims, (v) => v.indexOf(greatest(v)), Int32Array);
}
