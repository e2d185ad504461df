/* The solved members of a forecast, each for one target: seasons again, ridge regression, exponential
   smoothing, autoregression, ARIMA. */
const floored = (y, transform, floor) => (transform === "none" ? y : y.map((v) => Math.log(Math.max(v, floor))));
const unlogged = (found, transform) => (transform === "none" ? found : found.map((v) => Math.exp(Math.min(v, 60))));
const averaged = (values) => values.reduce((a, b) => a + b, 0) / values.length;
const within = (v, low, high) => Math.min(Math.max(v, low), high);
const parametersOf = ({ parameters }, row, k) => parameters[row < 0 ? parameters.length - 1 : row][k];

/* raw: with NaN where a number is missing; y: a season before or the last one in its place; wide: with room
   before it; beside, known: the other columns. */
function groundOf(table, now, clock, row, step) {
    const { season, room, targets } = step, others = carried(table.map((own) => own.slice(targets))), width = step.columns.length - targets - step.known;
    const raw = Array.from({ length: targets }, (_, k) => table.slice(0, now).map((own) => own[k]));
    const y = raw.map((own) => own.reduce((filled, v, t) => {
        filled.push(!Number.isNaN(v) ? v : t >= season ? filled[t - season] : t ? filled[t - 1] : 0);
        return filled;
    }, []));
    const wide = y.map((own) => [...new Array(room).fill(own[0]), ...own]);
    return { raw, y, wide, now, clock, row, room, beside: others[now - 1].slice(0, width), known: others.map((own) => own.slice(width)) };
}

const harmonics = (clock, periods) => periods.flatMap((period) => [1, 2].flatMap((k) => {
    const part = clock * k / period, turn = 2 * Math.PI * (part - Math.floor(part));
    return [Math.sin(turn), Math.cos(turn)];
}));
const again = (y, season, horizon) => Array.from({ length: horizon }, (_, h) => y[y.length - season + (h % season)] ?? y[y.length - 1]);

/* Level, trend and season before the first step, by the first two seasons. */
function begun(first, season, multiplies) {
    if (season === 1) {
        const trend = (first[first.length - 1] - first[0]) / Math.max(first.length - 1, 1);
        return [first[0] - trend, trend, [0]];
    }
    const begin = averaged(first.slice(0, season)), trend = (averaged(first.slice(season)) - begin) / season, middle = (season - 1) / 2;
    const off = first.map((v, t) => { const line = begin + trend * (t - middle); return multiplies ? v / Math.max(line, 1e-9) : v - line; });
    const rounds = Array.from({ length: season }, (_, s) => averaged(off.filter((_, t) => t % season === s))), even = averaged(rounds);
    return [begin - trend * (middle + 1), trend, rounds.map((v) => (multiplies ? within(v / Math.max(even, 1e-9), 0.05, 20) : v - even))];
}

const withoutGaps = (y) => {
    let before = y.find((v) => !Number.isNaN(v)) ?? 0;
    return y.map((v) => (before = Number.isNaN(v) ? before : v));
};

/* The errors of an ARIMA one step ahead, with the last season of them. */
function recursion([phi, theta, seasonal], season) {
    const ring = new Array(season + 1).fill(0);
    let before = 0;
    return {
        expected: () => phi * before + theta * ring[season] + (season > 1 ? seasonal * ring[1] + theta * seasonal * ring[0] : 0),
        take: (w, error) => { ring.shift(); ring.push(error); before = w; },
    };
}

const MEMBERS = {
    repeated: ({ y }, { season }, horizon, k) => again(y[k], season, horizon),
    ridge: ({ wide: every, room, clock, now, beside, known }, own, horizon, k) => {
        const { form } = own, wide = every[k], end = wide.length, group = own.weight.length === 1 ? 0 : k;
        const level = floored(wide, form.transform, own.floor[k]), seasonal = form.anchor === "season";
        const middle = averaged(level.slice(end - Math.max(form.anchor === "mean" ? form.season : 1, 1)));
        const anchor = (h) => (seasonal ? level[end - form.season + (h % form.season)] : middle);
        let spread = 1;
        if (form.scaled && form.transform === "none") {
            const last = wide.slice(end - room), mean = averaged(last);
            spread = Math.max(Math.sqrt(averaged(last.map((v) => (v - mean) ** 2))), 0.01 * Math.abs(mean) + 1e-9);
        }
        const x = Array.from({ length: own.look_back }, (_, lag) => (level[end - 1 - lag] - (seasonal ? level[end - 1 - lag - form.season] : middle)) / spread);
        x.push(...harmonics(clock, form.periods), ...beside);
        const said = Array.from({ length: horizon }, (_, h) => {
            const inputs = [...x, ...[0, 1, 2].flatMap((back) => known[Math.max(now + h - back, 0)])];
            return anchor(h) + spread * (own.bias[group][h] + inputs.reduce((sum, v, j) => sum + own.weight[group][h][j] * v, 0));
        });
        return unlogged(said, form.transform);
    },
    smoothing: ({ raw, y: filled, row }, own, horizon, k) => {
        const { season, multiplies, transform } = own, y = floored(raw[k], transform, own.floor[k]), needed = season > 1 ? 2 * season : 4;
        if (y.length < needed) return unlogged(again(floored(filled[k], transform, own.floor[k]), season, horizon), transform);
        const [alpha, beta, gamma, phi] = parametersOf(own, row, k), first = withoutGaps(y.slice(0, needed)), low = Math.max(0.01 * Math.abs(averaged(first)), 1e-9);
        let [level, trend, ring] = begun(first, season, multiplies);
        if (!(beta > 0)) trend = 0;
        y.forEach((value, step) => {
            const damped = phi * trend, place = step % season, gone = Number.isNaN(value);
            let base = level + damped, error;
            if (multiplies) {
                base = Math.max(base, low);
                error = gone ? 0 : value / ring[place] - base;
                ring[place] = within(ring[place] * (1 + gamma * (1 - alpha) * error / base), 0.05, 20);
            } else {
                error = gone ? 0 : value - base - ring[place];
                ring[place] += gamma * (1 - alpha) * error;
            }
            level = base + alpha * error;
            trend = damped + alpha * beta * error;
        });
        const highest = 3 * Math.max(...y.map((v) => (Number.isNaN(v) ? 0 : v)));
        let steps = 0;
        return unlogged(Array.from({ length: horizon }, (_, h) => {
            steps += phi ** (h + 1);
            const found = level + trend * steps, more = ring[(y.length + h) % season];
            return season === 1 ? found : multiplies ? Math.min(found * more, highest) : found + more;
        }), transform);
    },
    autoregression: ({ wide, clock }, own, horizon, k) => {
        const level = floored(wide[k], own.transform, own.floor[k]), w = own.difference ? level.map((v, t) => (t ? v - level[t - 1] : 0)) : level;
        let back = Array.from({ length: own.lags }, (_, lag) => w[Math.max(w.length - 1 - lag, 0)]), last = level[level.length - 1];
        return unlogged(Array.from({ length: horizon }, (_, h) => {
            const now = [...back, ...harmonics(clock + h + 1, own.periods)].reduce((sum, v, j) => sum + own.weight[k][j] * v, own.bias[k]);
            back = [now, ...back.slice(0, -1)];
            last = own.difference ? last + now : now;
            return last;
        }), own.transform);
    },
    arima: ({ raw, y: filled, row }, own, horizon, k) => {
        const { season: m, difference: d, transform } = own, y = [...floored(filled[k], transform, own.floor[k])], needed = d + (m > 1 ? m : 0);
        if (y.length < 2 * needed) return unlogged(again(y, m, horizon), transform);
        const parameters = parametersOf(own, row, k), [phi, theta, seasonal, centre] = parameters;
        let w = floored(raw[k], transform, own.floor[k]);
        for (const lag of [...(m > 1 ? [m] : []), ...(d ? [1] : [])]) w = w.map((v, t, all) => (t < lag ? NaN : v - all[t - lag]));
        w = w.slice(needed).map((v) => v - centre);
        const backward = recursion(parameters, m), forward = recursion(parameters, m), earlier = [], errors = new Array(needed).fill(0);
        const taken = (own, v) => { const error = Number.isNaN(v) ? 0 : v - own.expected(); own.take(Number.isNaN(v) ? 0 : v, error); return error; };
        for (let t = Math.min(needed, w.length) - 1; t >= 0; t--) taken(backward, w[t]);
        for (let t = 0; t <= m; t++) { earlier.unshift(backward.expected()); backward.take(earlier[0], 0); }
        earlier.forEach((v) => taken(forward, v));
        w.forEach((v) => errors.push(taken(forward, v)));
        let before = w.length && !Number.isNaN(w[w.length - 1]) ? w[w.length - 1] : 0;
        for (let t = filled[k].length; t < filled[k].length + horizon; t++) {
            errors.push(0);
            before = phi * before + theta * errors[t - 1] + (m > 1 ? seasonal * errors[t - m] + theta * seasonal * (errors[t - m - 1] ?? 0) : 0);
            y[t] = before + centre + (m > 1 ? y[t - m] : 0) + (d ? y[t - 1] - (m > 1 ? y[t - m - 1] : 0) : 0);
        }
        return unlogged(y.slice(filled[k].length), transform);
    },
};

function mixed(ground, step, scale) {
    const said = ground.y.map((_, k) => {
        const each = step.members.map((own) => MEMBERS[own.kind](ground, own, step.horizon, k));
        return Array.from({ length: step.horizon }, (_, h) => step.members.reduce((sum, own, m) => sum + own.share * each[m][h], 0));
    });
    return Array.from({ length: step.horizon }, (_, h) => said.map((own, k) => (levelOf(own[h], k, step) - scale[k][0]) / scale[k][1]));
}
