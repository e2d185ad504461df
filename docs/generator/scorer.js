// Order of search results: pages that show how to do something first, then tutorials and
// explanations; members of classes and tables of measurements last. See html_search_scorer.
const FOLDERS = { howto: 4, tutorials: 3, explanation: 2, reference: 0, evidence: -3 };
const COLLECTIONS = { index: -4, cheatsheet: 0, "explanation/mistakes": -1, "explanation/courses": -1 };

var Scorer = {
  // a result is [page, title, anchor, description, score, file]
  score: ([page, , anchor, , score]) =>
    score + (COLLECTIONS[page] ?? FOLDERS[page.split("/")[0]] ?? 0) - ((anchor || "").startsWith("#ensue.") ? 6 : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
