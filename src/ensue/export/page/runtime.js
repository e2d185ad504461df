/* What is the same for every classifier: cutting a text, looking up its words, and running the
   members of MODEL over them. */

export function tokenise(text) {
    const how = MODEL.tokenise;
    if (how.nfc) text = text.normalize("NFC");
    if (how.breaks === "space") text = text.replace(/<br\s*\/?>/gi, (found) => " ".repeat(found.length));
    if (how.lower) text = text.toLowerCase();
    if (how.numbers === "digit") text = text.replace(/\p{Nd}/gu, "0");
    let found = text.match(new RegExp(how.pattern, how.flags)) || [];
    if (how.numbers === "tag")
        found = found.map((own) => (/^\p{Nd}+(?:[.,]\p{Nd}+)*$/u.test(own) ? "<number>" : own));
    return cut(cut(found, how), MODEL.cut);
}

function cut(found, how) {
    const most = how.max_length;
    if (most === null || found.length <= most) return found;
    return how.cut === "end" ? found.slice(0, most) : found.slice(found.length - most);
}

const NUMBERS = new Map(MODEL.vocabulary.map((token, number) => [token, number]));
NUMBERS.set(MODEL.vocabulary[0], 1);

export const look = (tokens) => tokens.map((token) => NUMBERS.get(token) ?? 1);
export const isKnown = (token) => (NUMBERS.get(token) ?? 1) > 1;

const POOLINGS = {
    last: (member, y, steps, state) => member.final.flatMap(([at, n]) => [...state.subarray(at, at + n)]),
    mean: (member, y, steps) => features(member, (j) => {
        let sum = 0;
        for (let t = 0; t < steps; t++) sum += y[t * member.OUTPUT + j];
        return sum / Math.max(steps, 1);
    }),
    max: (member, y, steps) => features(member, (j) => {
        let best = steps ? -Infinity : 0;
        for (let t = 0; t < steps; t++) best = Math.max(best, y[t * member.OUTPUT + j]);
        return best;
    }),
    attention: (member, y, steps) => {
        const { hidden, bias, score } = member.attention, n = member.OUTPUT;
        const logits = Array.from({ length: steps }, (_, t) => {
            let total = 0;
            for (let i = 0; i < n; i++) {
                let sum = bias[i];
                for (let j = 0; j < n; j++) sum += hidden[i * n + j] * y[t * n + j];
                total += score[i] * Math.tanh(sum);
            }
            return total;
        });
        const alpha = softmax(logits);
        return features(member, (j) => alpha.reduce((sum, a, t) => sum + a * y[t * n + j], 0));
    },
};

function features(member, value) {
    return Array.from({ length: member.OUTPUT }, (_, j) => value(j));
}

function softmax(z) {
    const top = Math.max(...z), each = z.map((v) => Math.exp(v - top));
    const sum = each.reduce((a, b) => a + b, 0);
    return each.map((v) => v / sum);
}

function scores(member, ids) {
    const steps = ids.length, width = member.INPUT, x = new Float32Array(steps * width);
    ids.forEach((id, t) => x.set(member.embedding.subarray(id * width, (id + 1) * width), t * width));
    const state = member.start(), y = new Float32Array(steps * member.OUTPUT);
    const seen = new Float32Array(steps * member.SEEN);
    member.run(x, steps, state, y, seen);
    const pooled = member.poolings.flatMap((name) => POOLINGS[name](member, y, steps, state));
    const z = Array.from(member.bias, (b, k) => {
        let sum = b;
        for (let j = 0; j < pooled.length; j++) sum += member.output[k * pooled.length + j] * pooled[j];
        return sum;
    });
    return { z, seen };
}

/* The probability of each class, of word numbers; `seen`: what the first member computed inside. */
export function forward(ids) {
    const each = MODEL.members.map((member) => scores(member, ids));
    const several = MODEL.several;
    const all = each.map(({ z }) => (several ? z.map((v) => 1 / (1 + Math.exp(-v))) : softmax(z)));
    const probabilities = all[0].map((_, k) => all.reduce((sum, own) => sum + own[k], 0) / all.length);
    return { probabilities, seen: each[0].seen };
}

/* The answer to a text: its tokens, its label (or labels), and the probability of each. */
export function answer(text) {
    const tokens = tokenise(text), found = forward(look(tokens)), p = found.probabilities;
    const best = p.indexOf(Math.max(...p));
    const label = MODEL.several ? MODEL.labels.filter((_, k) => p[k] > MODEL.threshold) : MODEL.labels[best];
    return { tokens, label, ...found };
}
