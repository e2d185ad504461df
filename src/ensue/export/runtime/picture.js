/* A picture {shape: [channels, height, width], data: bytes}, brought to the shape of training. */

function meansOf(before, after) {
    const scale = before / after;
    return Array.from({ length: after }, (_, k) => {
        const centre = (k + 0.5) * scale;
        const weight = Array.from({ length: before }, (_, j) => Math.max(0, 1 - Math.abs(j + 0.5 - centre) / Math.max(scale, 1)));
        const total = weight.reduce((a, b) => a + b, 0);
        return weight.map((v) => v / total);
    });
}

/* To the nearest whole number, of two equally near ones the even one. */
const nearest = (v) => (v % 1 === 0.5 && Math.floor(v) % 2 === 0 ? Math.floor(v) : Math.round(v));

function shapeOfPicture(given) {
    const form = "{shape: [channels, height, width], data: bytes}";
    if (!isRow(given) || !isList(given.shape) || !isList(given.data)) throw refused(`a picture, ${form}`, given);
    const shape = given.shape.length === 2 ? [1, ...given.shape] : [...given.shape];
    if (shape.length !== 3 || ![1, 3].includes(shape[0]) || !shape.every((size) => Number.isInteger(size) && size > 0)) throw refused(`a picture, ${form} with 1 or 3 channels`, given.shape);
    const size = shape[0] * shape[1] * shape[2];
    if (given.data.length !== size) throw new Error(`expected ${size} bytes for the shape ${quoted(given.shape)}, got ${given.data.length}`);
    if (!given.data.every((v) => Number.isInteger(v) && v >= 0 && v <= 255)) throw new Error("expected whole numbers of 0 to 255 as brightness, got others");
    return shape;
}

STEPS.picture = (values, step) => {
    const [channels, height, width] = step.shape, given = values[step.from];
    let [count, tall, wide] = shapeOfPicture(given);
    let planes = Array.from({ length: count }, (_, c) => Float64Array.from(given.data.slice(c * tall * wide, (c + 1) * tall * wide)));
    if (channels < count) planes = [planes[0].map((_, k) => step.grey.reduce((s, g, c) => s + g * planes[c][k], 0))];
    if (tall !== height || wide !== width) {
        const rows = meansOf(tall, height), columns = meansOf(wide, width);
        planes = planes.map((plane) => {
            const between = rows.flatMap((weights) => Array.from({ length: wide }, (_, x) => weights.reduce((s, w, y) => s + w * plane[y * wide + x], 0)));
            return Float64Array.from(rows.flatMap((_, y) => columns.map((weights) => weights.reduce((s, w, x) => s + w * between[y * wide + x], 0))));
        });
    }
    const bytes = planes.map((plane) => plane.map((v) => Math.max(0, Math.min(255, nearest(v)))));
    const all = Array.from({ length: channels }, (_, c) => bytes[Math.min(c, bytes.length - 1)]);
    values[step.to] = all.map((plane) => Array.from({ length: height }, (_, y) => [...plane.subarray(y * width, (y + 1) * width)]));
};
