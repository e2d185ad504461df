/* The solved members of a forecast, each for one target y: seasons again, ridge regression,
   exponential smoothing. */

const floored = (y, transform, floor) => (transform === "none" ? y : y.map((v) => Math.log(Math.max(v, floor))));
const unlogged = (found, transform) => (transform === "none" ? found : found.map((v) => Math.exp(Math.min(v, 60))));
const averaged = (values) => values.reduce((a, b) => a + b, 0) / values.length;

const MEMBERS = {
    repeated: (y, { season }, horizon) => Array.from({ length: horizon }, (_, h) => {
        const at = y.length - season + (h % season);
        return y[at < 0 ? y.length - 1 : at];
    }),
    ridge: (y, own, horizon, room, k) => {
        const { form } = own, wide = [...new Array(room).fill(y[0]), ...y], end = wide.length, group = own.weight.length === 1 ? 0 : k;
        const level = floored(wide, form.transform, own.floor[k]), seasonal = form.anchor === "season";
        const middle = averaged(level.slice(end - Math.max(form.anchor === "mean" ? form.season : 1, 1)));
        const anchor = (h) => (seasonal ? level[end - form.season + (h % form.season)] : middle);
        let spread = 1;
        if (form.scaled && form.transform === "none") {
            const last = wide.slice(end - room), mean = averaged(last);
            spread = Math.max(Math.sqrt(averaged(last.map((v) => (v - mean) ** 2))), 0.01 * Math.abs(mean) + 1e-9);
        }
        const x = Array.from({ length: own.look_back }, (_, lag) => (level[end - 1 - lag] - (seasonal ? level[end - 1 - lag - form.season] : middle)) / spread);
        const said = Array.from({ length: horizon }, (_, h) =>
            anchor(h) + spread * (own.bias[group][h] + x.reduce((sum, v, j) => sum + own.weight[group][h][j] * v, 0)));
        return unlogged(said, form.transform);
    },
    smoothing: (y, own, horizon, room, k) => {
        const { season, multiplies } = own, levels = floored(y, own.transform, own.floor[k]), needed = season > 1 ? 2 * season : 4;
        if (y.length < needed) return unlogged(MEMBERS.repeated(levels, own, horizon), own.transform);
        const [alpha, beta, gamma, phi] = own.parameters[0][k], first = levels.slice(0, needed);
        let level, trend, ring;
        if (season === 1) {
            trend = (first[first.length - 1] - first[0]) / Math.max(first.length - 1, 1);
            level = first[0] - trend;
            ring = [0];
        } else {
            const begin = averaged(first.slice(0, season));
            trend = (averaged(first.slice(season)) - begin) / season;
            const line = first.map((_, t) => begin + trend * (t - (season - 1) / 2));
            const off = first.map((v, t) => (multiplies ? v / Math.max(line[t], 1e-9) : v - line[t]));
            const rounds = Array.from({ length: season }, (_, s) => averaged(off.filter((_, t) => t % season === s))), middle = averaged(rounds);
            ring = rounds.map((v) => (multiplies ? v / Math.max(middle, 1e-9) : v - middle));
            level = begin - trend * ((season - 1) / 2 + 1);
        }
        if (!(beta > 0)) trend = 0;
        levels.forEach((value, step) => {
            const damped = phi * trend, place = step % season;
            let base = level + damped, error;
            if (multiplies) {
                base = Math.max(base, 1e-9);
                error = value / Math.max(ring[place], 1e-9) - base;
                ring[place] = Math.max(ring[place] * (1 + gamma * (1 - alpha) * error / base), 1e-9);
            } else {
                error = value - base - ring[place];
                ring[place] += gamma * (1 - alpha) * error;
            }
            level = base + alpha * error;
            trend = damped + alpha * beta * error;
        });
        let steps = 0;
        return unlogged(Array.from({ length: horizon }, (_, h) => {
            steps += phi ** (h + 1);
            const again = season > 1 ? ring[(y.length + h) % season] : multiplies ? 1 : 0, found = level + trend * steps;
            return multiplies ? found * again : found + again;
        }), own.transform);
    },
};

STEPS["mixed series"] = (values, step) => {
    const given = values[step.from], columns = Array.isArray(given) ? [given] : step.columns.map((name) => given[name]);
    const count = columns[0].length, [toLevel] = LEVELS[step.transform];
    if (count < step.least || columns.some((own) => own.some((v) => v === null || Number.isNaN(v))))
        throw new Error(`expected at least ${step.least} numbers, none of them missing`);
    const scaled = (v, k) => (toLevel(step.floor ? Math.max(v, step.floor[k]) : v) - step.mean[k]) / step.spread[k];
    const said = columns.map((y, k) => {
        const each = step.members.map((own) => MEMBERS[own.kind](y, own, step.horizon, step.room, k));
        return Array.from({ length: step.horizon }, (_, h) => step.members.reduce((sum, own, m) => sum + own.share * each[m][h], 0));
    });
    values.base = Array.from({ length: step.horizon }, (_, h) => said.map((own, k) => scaled(own[h], k)));
    values.past = Array.from({ length: step.look_back }, (_, t) => {
        const place = count - step.look_back + t;
        return [...columns.map((y, k) => (place < 0 ? 0 : scaled(y[place], k))), ...columns.map(() => (place < 0 ? 0 : 1))];
    });
};
