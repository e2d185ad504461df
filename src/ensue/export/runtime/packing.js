/* What was packed: base64 of zlib. Written out, for a browser's own way to unpack cannot be waited for here. */

function bytesOf(text) {
    const data = atob(text), bytes = new Uint8Array(data.length);
    for (let k = 0; k < data.length; k++) bytes[k] = data.charCodeAt(k);
    return bytes;
}

/* A Huffman code as a table over the next 15 bits: 16·symbol + length. */
function codeOf(lengths) {
    const table = new Uint16Array(1 << 15);
    let code = 0;
    for (let length = 1; length < 16; length++, code <<= 1)
        lengths.forEach((own, symbol) => {
            if (own !== length) return;
            let first = 0;
            for (let k = 0; k < length; k++) first |= ((code >> k) & 1) << (length - 1 - k);
            for (let at = first; at < 1 << 15; at += 1 << length) table[at] = 16 * symbol + length;
            code++;
        });
    return table;
}

/* RFC 1951, between the two bytes before it and the four after it that are zlib's. */
function inflated(data) {
    const order = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
    let at = 16, end = 0, out = new Uint8Array(4 * data.length + 64), last = 0;
    const room = (more) => {
        if (end + more <= out.length) return;
        const wider = new Uint8Array(2 * out.length + more);
        wider.set(out);
        out = wider;
    };
    const peek = () => ((data[at >> 3] | (data[(at >> 3) + 1] << 8) | (data[(at >> 3) + 2] << 16)) >> (at & 7));
    const bits = (count) => { const own = peek() & ((1 << count) - 1); at += count; return own; };
    const symbol = (code) => { const own = code[peek() & 32767]; at += own & 15; return own >> 4; };
    const extra = (step, from) => Math.floor((2 * (step - from)) / from) + 1; // bits behind a symbol
    const size = (own) => {
        if (own < 8 || own === 28) return own === 28 ? 258 : 3 + own;
        const more = extra(own, 8);
        return 3 + ((4 + (own & 3)) << more) + bits(more);
    };
    const distance = (own) => {
        if (own < 4) return 1 + own;
        const more = extra(own, 4);
        return 1 + ((2 + (own & 1)) << more) + bits(more);
    };
    const lengthsOf = () => {
        const literals = bits(5) + 257, distances = bits(5) + 1, count = bits(4) + 4, short = new Uint8Array(19), found = [];
        for (let k = 0; k < count; k++) short[order[k]] = bits(3);
        const code = codeOf(short);
        while (found.length < literals + distances) {
            const own = symbol(code), again = own < 16 ? 1 : own === 16 ? 3 + bits(2) : own === 17 ? 3 + bits(3) : 11 + bits(7);
            const value = own < 16 ? own : own === 16 ? found[found.length - 1] : 0;
            for (let k = 0; k < again; k++) found.push(value);
        }
        return [codeOf(Uint8Array.from(found.slice(0, literals))), codeOf(Uint8Array.from(found.slice(literals)))];
    };
    const fixed = () => [codeOf(Uint8Array.from({ length: 288 }, (_, k) => (k < 144 ? 8 : k < 256 ? 9 : k < 280 ? 7 : 8))), codeOf(new Uint8Array(30).fill(5))];
    while (!last) {
        last = bits(1);
        const kind = bits(2);
        if (kind === 0) {
            const from = ((at + 7) >> 3) + 4, count = data[from - 4] | (data[from - 3] << 8);
            room(count);
            out.set(data.subarray(from, from + count), end);
            end += count;
            at = 8 * (from + count);
            continue;
        }
        const [literal, away] = kind === 1 ? fixed() : lengthsOf();
        for (let own = symbol(literal); own !== 256; own = symbol(literal)) {
            room(258);
            if (own < 256) { out[end++] = own; continue; }
            const count = size(own - 257), back = distance(symbol(away));
            for (let k = 0; k < count; k++, end++) out[end] = out[end - back];
        }
    }
    return out.subarray(0, end);
}

/* The same values, with lists that were packed as they are. */
function unpacked(own) {
    if (Array.isArray(own)) return own.map(unpacked);
    if (own === null || typeof own !== "object") return own;
    if (own.packed !== undefined) return JSON.parse(new TextDecoder().decode(inflated(bytesOf(own.packed))));
    return Object.fromEntries(Object.entries(own).map(([name, value]) => [name, unpacked(value)]));
}
