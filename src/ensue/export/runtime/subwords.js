/* Subwords by byte-pair encoding: the pair that was learned first is merged, until there is none. */

function mergedPiece(piece, { ranks, letters, unknown }) {
    const found = [...piece].map((own) => (letters.has(own) ? own : unknown));
    for (;;) {
        let best = Infinity, at = -1;
        for (let k = 0; k + 1 < found.length; k++) {
            const rank = ranks.get(`${found[k]} ${found[k + 1]}`);
            if (rank < best) [best, at] = [rank, k];
        }
        if (at < 0) return found;
        found.splice(at, 2, found[at] + found[at + 1]);
    }
}

function subwords(text, step) {
    if (!TABLES.has(step)) TABLES.set(step, { ranks: new Map(step.merges.map((pair, k) => [pair, k])), letters: new Set(step.letters), unknown: step.unknown, known: new Map() });
    const table = TABLES.get(step), found = [], sign = step.word;
    text.split(step.unknown).forEach((part, number) => {
        if (number) found.push(step.unknown);
        const marked = part.replaceAll(" ", sign);
        for (const word of (!marked || marked.startsWith(sign) ? marked : sign + marked).split(sign).slice(1)) {
            if (!table.known.has(word)) table.known.set(word, mergedPiece(sign + word, table));
            found.push(...table.known.get(word));
        }
    });
    return found;
}
