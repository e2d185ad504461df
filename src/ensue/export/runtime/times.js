/* Times: read in the spelling that fits all of them, and how far they are apart. A date is a number of
   milliseconds since 1970, UTC. */
const DAY = 86400000, MONTH_NAMES = "janfebmaraprmayjunjulaugsepoctnovdec", TIME_PARTS = ["year", "month", "day", "hour", "minute", "second"];
const twoDigits = (number) => String(Number(number)).padStart(2, "0");
const monthOf = (ms) => { const own = new Date(ms); return 12 * own.getUTCFullYear() + own.getUTCMonth(); };
const weekdayOf = (ms) => (new Date(ms).getUTCDay() + 6) % 7; // Monday is 0
const clockTime = (ms) => ((ms % DAY) + DAY) % DAY;
const commonDivisor = (a, b) => { while (b) [a, b] = [b, a % b]; return a; };

function timeTexts(given, names) {
    if (names.length === 1) return given[names[0]].map((own) => stripped(String(own)));
    const parts = Object.fromEntries(names.map((name) => [stripped(name).toLowerCase(), given[name]]));
    const whole = (name, k) => {
        const found = finiteNumber(parts[name][k]);
        if (!Number.isInteger(found)) throw new Error(`column ${name}: expected a whole number, got ${quoted(parts[name][k])}`);
        return found;
    };
    return parts.year.map((_, k) => {
        const part = (name, none) => (parts[name] ? twoDigits(whole(name, k)) : none), clock = TIME_PARTS.slice(3).filter((name) => parts[name]).map((name) => part(name));
        if (clock.length === 1) clock.push("00");
        return `${String(whole("year", k)).padStart(4, "0")}-${part("month", "01")}-${part("day", "01")} ${clock.join(":")}`.trimEnd();
    });
}

function readTime(text, pattern) {
    const own = new RegExp(`^(?:${pattern})$`, "i").exec(text)?.groups;
    if (!own) return null;
    let month = own.q ? 3 * own.q - 2 : Number(own.m ?? 1), year = Number(own.y), hour = Number(own.H ?? 0);
    if (own.b) month = MONTH_NAMES.indexOf(own.b.slice(0, 3).toLowerCase()) / 3 + 1;
    if (own.y.length === 2 && (own.d || own.b)) year += year >= 69 ? 1900 : 2000;
    if (own.p) hour = hour % 12 + (own.p.toLowerCase() === "pm" ? 12 : 0);
    const day = Number(own.d ?? 1), date = new Date(0);
    date.setUTCFullYear(year, month - 1, day);
    if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day || hour > 23 || own.M > 59 || own.S > 59) return null;
    const zone = (own.z ?? "Z").toUpperCase().replace(":", ""), ahead = /^[+-]/.test(zone) ? (60 * zone.slice(1, 3) + Number(zone.slice(3))) * (zone[0] === "+" ? 1 : -1) : 0;
    return date.getTime() + 3600000 * hour + 60000 * (own.M ?? 0) + 1000 * (own.S ?? 0) + Number((own.f ?? "0").padEnd(6, "0")) / 1000 - 60000 * ahead;
}

function readNumbers(texts, reads) {
    const found = texts.map(finiteNumber);
    if (found.some(Number.isNaN)) return null;
    for (const [unit, [low, high]] of reads.unix)
        if (found.every((own) => low <= own && own < high)) return { dates: true, moments: found.map((own) => own / unit * 1000) };
    const compact = reads.compact ? found.map((own) => readTime(own.toFixed(0), "(?<y>\\d{4})(?<m>\\d\\d)(?<d>\\d\\d)")) : [null];
    return compact.includes(null) ? { dates: false, moments: found } : { dates: true, moments: compact };
}

function readTimes(texts, reads) {
    const numbers = readNumbers(texts, reads), fitting = (pattern) => texts.map((own) => readTime(own, pattern));
    if (numbers) return numbers;
    for (const pattern of reads.patterns) {
        const found = fitting(pattern);
        if (!found.includes(null)) return { dates: true, moments: found };
    }
    const either = reads.either.map(fitting).filter((own) => !own.includes(null)), even = either.filter((own) => spacingOf(own, true)), left = even.length ? even : either;
    if (left.length > 1 && !texts.every((own) => own.split(" ")[0].includes("."))) throw new Error(`${texts[0]}: day or month first? Write ${new Date(left[0][0]).toISOString().slice(0, 10)}`);
    if (!left.length) throw new Error(`expected times written as 2026-01-31 or 2026-01-31T12:00, got ${texts[0]}`);
    return { dates: true, moments: left[0] };
}

/* How far steps are apart; null where that is not clear. */
function spacingOf(moments, dates) {
    const spans = moments.slice(1).map((own, k) => own - moments[k]);
    if (!spans.length || spans.some((own) => !(own > 0))) return null;
    let found;
    if (!dates) {
        const least = Math.min(...spans), near = spans.filter((own) => own <= least * (1 + 1e-6) + 1e-12);
        found = { kind: "number", size: near.reduce((a, b) => a + b, 0) / near.length };
    } else {
        const clocks = new Set(moments.map(clockTime)).size === 1, days = moments.map((own) => new Date(own).getUTCDate());
        const months = moments.slice(1).map((own, k) => monthOf(own) - monthOf(moments[k])).reduce(commonDivisor), span = spans.map((own) => Math.round(1000 * own)).reduce(commonDivisor) / 1000;
        if (clocks && months && new Set(days).size === 1 && days[0] <= 28) found = { kind: "months", size: months };
        else if (clocks && months && moments.every((own) => new Date(own + DAY).getUTCDate() === 1)) found = { kind: "month ends", size: months };
        else if (clocks && span === DAY && moments.every((own) => weekdayOf(own) < 5) && moments.length > 5) found = { kind: "working days", size: DAY };
        else found = { kind: "span", size: span };
    }
    const counts = moments.slice(1).map((own, k) => stepsBetween(found, moments[k], own));
    return counts.includes(null) || counts.reduce((sum, own) => sum + own - 1, 0) > moments.length ? null : found;
}

function stepsBetween({ kind, size }, one, two) {
    let count = (two - one) / size;
    if (kind === "months" || kind === "month ends") count = (monthOf(two) - monthOf(one)) / size;
    if (kind === "working days") {
        const days = Math.floor(two / DAY) - Math.floor(one / DAY) + weekdayOf(one);
        count = Math.floor(days / 7) * 5 + Math.min(days % 7, 5) - weekdayOf(one);
    }
    const near = Math.round(count), off = Math.abs(count - near);
    return near < 1 || off > (kind === "number" ? Math.max(1e-6 * Math.abs(count), 1e-3) : 1e-9 * Math.abs(count)) ? null : near;
}

function timeAfter(spacing, moment, steps) {
    if (!spacing) return moment;
    const { kind, size } = spacing, own = new Date(moment);
    if (kind === "working days") {
        const day = weekdayOf(moment) + steps;
        return moment + (7 * Math.floor(day / 5) + day % 5 - weekdayOf(moment)) * DAY;
    }
    if (kind !== "months" && kind !== "month ends") return moment + size * steps;
    const date = new Date(0), month = own.getUTCMonth() + size * steps;
    date.setUTCFullYear(own.getUTCFullYear(), kind === "months" ? month : month + 1, kind === "months" ? own.getUTCDate() : 0);
    return date.getTime() + clockTime(moment);
}

const clockOf = (spacing, moment, step) => {
    if (!spacing) return step;
    const { kind, size } = spacing;
    if (kind === "months" || kind === "month ends") return monthOf(moment) / size;
    return kind === "working days" ? moment / DAY * 260.9 / 365.25 : moment / size;
};

const PHASES = {
    month: (own) => new Date(own).getUTCMonth() / 12,
    weekday: (own) => weekdayOf(own) / 7,
    hour: (own) => Math.floor(clockTime(own) / 60000) / 1440,
    yearday: (own) => (Math.floor(own / DAY) - Math.floor(new Date(own).setUTCMonth(0, 1) / DAY) + Math.floor(clockTime(own) / 60000) / 1440) / 365.25,
};
const calendarOf = (moment, names) => names.flatMap((name) => { const turn = 2 * Math.PI * PHASES[name](moment); return [Math.sin(turn), Math.cos(turn)]; });
