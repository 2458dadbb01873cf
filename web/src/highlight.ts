// Code as coloured pieces: Python around C++ in long strings, whose inside is coloured as code too. A piece is [class, text].
const WORDS =
  "and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield None True False " +
  "auto bool char const constexpr double float int int32_t int64_t inline long namespace restrict __restrict__ __global__ __device__ __shared__ size_t static struct template typename unsigned using void parallel range";
const KEYWORDS = new Set(WORDS.split(" "));
const TOKEN =
  /("""[\s\S]*?"""|'''[\s\S]*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|(#[^\n]*|\/\/[^\n]*|\/\*[\s\S]*?\*\/)|(\b\d[\w.]*)|([A-Za-z_]\w*)(?=\s*(\()?)/g;

export type Piece = [string, string];

export function pieces(text: string, depth = 0): Piece[] {
  const found: Piece[] = [];
  let last = 0;
  for (const match of text.matchAll(TOKEN)) {
    if (match.index > last) found.push(["", text.slice(last, match.index)]);
    const [whole, string, comment, number, word, call] = match;
    if (string && depth === 0 && string.length > 400) {
      found.push(["s", string.slice(0, 3)], ...pieces(string.slice(3, -3), 1), ["s", string.slice(-3)]);
    } else if (comment && comment[0] === "#" && depth > 0) found.push(["f", whole]); // a line for the preprocessor
    else found.push([string ? "s" : comment ? "c" : number ? "n" : word && KEYWORDS.has(word) ? "k" : call ? "f" : "", whole]);
    last = match.index + whole.length;
  }
  found.push(["", text.slice(last)]);
  return found;
}

/** The same, line by line. */
export function lines(text: string): Piece[][] {
  const found: Piece[][] = [[]];
  for (const [kind, piece] of pieces(text)) {
    const parts = piece.split("\n");
    parts.forEach((part, place) => {
      if (place) found.push([]);
      if (part) found[found.length - 1].push([kind, part]);
    });
  }
  return found;
}
