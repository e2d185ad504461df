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

STEPS.picture = (values, step) => {
    const [channels, height, width] = step.shape, given = values[step.from];
    let [count, tall, wide] = given.shape.length === 2 ? [1, ...given.shape] : given.shape;
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
