/* TF-IDF of n-grams of words, and of letters within words: an n-gram is known by a 64-bit hash. */

const BITS = (1n << 64n) - 1n;
const INITIAL = [
    0x6a09e667f3bcc908n, 0xbb67ae8584caa73bn, 0x3c6ef372fe94f82bn, 0xa54ff53a5f1d36f1n,
    0x510e527fade682d1n, 0x9b05688c2b3e6c1fn, 0x1f83d9abfb41bd6bn, 0x5be0cd19137e2179n,
];
const ROUNDS = [
    "0123456789abcdef", "ea489fd61c02b753", "b8c052fdae367194", "7931dcbe265a40f8", "9057af24e1bc683d", "2c6a0b834d75fe19",
    "c51fed4a0763928b", "db7ec13950f4862a", "6fe9b308c2d714a5", "a2847615fb9e3cd0", "0123456789abcdef", "ea489fd61c02b753",
].map((order) => [...order].map((digit) => parseInt(digit, 16)));
const rotated = (v, n) => ((v >> n) | (v << (64n - n))) & BITS;

/* The first 64 bits of BLAKE2b with a digest of 8 bytes. */
function blake2b(bytes) {
    const h = INITIAL.slice();
    h[0] ^= 0x01010008n;
    const blocks = Math.max(1, Math.ceil(bytes.length / 128)), data = new Uint8Array(blocks * 128);
    data.set(bytes);
    const words = new BigUint64Array(data.buffer);
    for (let block = 0; block < blocks; block++) {
        const m = words.subarray(block * 16, block * 16 + 16), v = [...h, ...INITIAL];
        v[12] ^= BigInt(Math.min(bytes.length, (block + 1) * 128));
        if (block === blocks - 1) v[14] ^= BITS;
        const mix = (a, b, c, d, x, y) => {
            v[a] = (v[a] + v[b] + x) & BITS; v[d] = rotated(v[d] ^ v[a], 32n); v[c] = (v[c] + v[d]) & BITS; v[b] = rotated(v[b] ^ v[c], 24n);
            v[a] = (v[a] + v[b] + y) & BITS; v[d] = rotated(v[d] ^ v[a], 16n); v[c] = (v[c] + v[d]) & BITS; v[b] = rotated(v[b] ^ v[c], 63n);
        };
        for (const s of ROUNDS) {
            for (let k = 0; k < 4; k++) mix(k, k + 4, k + 8, k + 12, m[s[2 * k]], m[s[2 * k + 1]]);
            for (let k = 0; k < 4; k++) mix(k, 4 + ((k + 1) % 4), 8 + ((k + 2) % 4), 12 + ((k + 3) % 4), m[s[8 + 2 * k]], m[s[9 + 2 * k]]);
        }
        for (let k = 0; k < 8; k++) h[k] ^= v[k] ^ v[k + 8];
    }
    return h[0];
}

function mixed(v) {
    v = (v + 0x9e3779b97f4a7c15n) & BITS;
    v = ((v ^ (v >> 30n)) * 0xbf58476d1ce4e5b9n) & BITS;
    v = ((v ^ (v >> 27n)) * 0x94d049bb133111ebn) & BITS;
    return v ^ (v >> 31n);
}

class Block {
    /* A hash is kept by as many bits as a number holds: the bucket, and `bytes` of what follows. */
    constructor({ kind, shortest, longest, bits, bytes, buckets, rests, codes, idf }) {
        Object.assign(this, { kind, shortest, longest, left: BigInt(64 - bits - 8 * bytes), known: new Map() });
        const counts = inflated(bytesOf(buckets)), rest = bytesOf(rests), planes = inflated(bytesOf(codes));
        const size = rest.length / bytes, values = new Float32Array(bytesOf(idf).buffer);
        this.hashes = new Float64Array(size);
        this.idf = Float32Array.from({ length: size }, (_, k) => values[planes[k] + 256 * planes[size + k]]);
        for (let bucket = 0, place = 0; bucket < counts.length; bucket++)
            for (const end = place + counts[bucket]; place < end; place++) {
                let own = bucket;
                for (let k = 0; k < bytes; k++) own = 256 * own + rest[place * bytes + k];
                this.hashes[place] = own;
            }
    }

    column(whole) {
        const hash = Number(whole >> this.left);
        let low = 0, high = this.hashes.length;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (this.hashes[middle] < hash) low = middle + 1;
            else high = middle;
        }
        return low < this.hashes.length && this.hashes[low] === hash ? low : -1;
    }

    /* The columns of all n-grams of a sequence of numbers; key: under which they are remembered. */
    columns(key, units) {
        if (!this.known.has(key)) {
            const own = units(), found = [];
            for (let begin = 0; begin < own.length; begin++) {
                let hash = 0n;
                for (let n = 1; n <= this.longest && begin + n <= own.length; n++) {
                    hash = mixed(hash ^ mixed(own[begin + n - 1]));
                    if (n < this.shortest) continue;
                    const column = this.column(hash);
                    if (column >= 0) found.push(column);
                }
            }
            this.known.set(key, found);
        }
        return this.known.get(key);
    }

    counts(tokens) {
        const counts = new Map(), add = (column) => counts.set(column, (counts.get(column) || 0) + 1);
        if (this.kind === "letters") {
            for (const token of tokens) this.columns(token, () => [...` ${token} `].map((c) => BigInt(c.codePointAt(0)))).forEach(add);
            return counts;
        }
        const hashed = tokens.map(wordHash);
        for (let begin = 0; begin < tokens.length; begin++) {
            let hash = 0n;
            for (let n = 1; n <= this.longest && begin + n <= tokens.length; n++) {
                hash = mixed(hash ^ mixed(hashed[begin + n - 1]));
                if (!this.known.has(hash)) this.known.set(hash, this.column(hash));
                if (n >= this.shortest && this.known.get(hash) >= 0) add(this.known.get(hash));
            }
        }
        return counts;
    }
}

const WORD_HASHES = new Map(), ENCODER = new TextEncoder();
function wordHash(word) {
    if (!WORD_HASHES.has(word)) WORD_HASHES.set(word, blake2b(ENCODER.encode(word)));
    return WORD_HASHES.get(word);
}

STEPS.ngrams = (values, step) => {
    if (!TABLES.has(step)) TABLES.set(step, step.blocks.map((block) => new Block(block)));
    const columns = [], weights = [];
    let first = 0;
    for (const block of TABLES.get(step)) {
        const counts = block.counts(values[step.from]);
        const own = [...counts].map(([column, count]) => (1 + Math.log(count)) * block.idf[column]);
        const norm = Math.sqrt(own.reduce((sum, v) => sum + v * v, 0));
        for (const column of counts.keys()) columns.push(first + column);
        for (const v of own) weights.push(v / norm);
        first += block.hashes.length;
    }
    values[step.columns] = columns;
    values[step.values] = weights;
};
