// Texts from a dropped file: lines of text, a column of a table, or a field of JSON lines.

const TEXT_NAMES = ["text", "texts", "sentence", "question", "title", "content", "body", "문장", "텍스트", "내용", "질문", "제목"];

export async function textsOf(file) {
  const content = decoded(await file.arrayBuffer());
  const ending = file.name.toLowerCase().split(".").pop();
  if (ending === "csv" || ending === "tsv") return column(rowsOf(content, ending === "tsv" ? "\t" : ","));
  if (ending === "jsonl" || ending === "ndjson") return fields(content);
  return linesOf(content);
}

export function linesOf(content) {
  return content.split(/\r\n|\r|\n/).map((line) => line.trim()).filter(Boolean);
}

// Tables from Korean spreadsheets are often in EUC-KR.
function decoded(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("euc-kr", { fatal: true }).decode(bytes);
  }
}

function rowsOf(content, separator) {
  const rows = [];
  let row = [], cell = "", quoted = false;
  for (let at = 0; at < content.length; at += 1) {
    const letter = content[at];
    if (quoted) {
      if (letter !== '"') cell += letter;
      else if (content[at + 1] === '"') cell += content[(at += 1)];
      else quoted = false;
    } else if (letter === '"' && !cell) quoted = true;
    else if (letter === separator) row.push(cell), (cell = "");
    else if (letter === "\n") rows.push([...row, cell]), (row = []), (cell = "");
    else if (letter !== "\r") cell += letter;
  }
  if (cell || row.length) rows.push([...row, cell]);
  return rows.filter((cells) => cells.some((each) => each.trim()));
}

function column(rows) {
  const heads = (rows[0] ?? []).map((head) => head.trim().toLowerCase());
  const named = TEXT_NAMES.map((name) => heads.indexOf(name)).find((index) => index >= 0);
  const body = named === undefined ? rows : rows.slice(1);
  const chosen = named ?? longest(heads.map((_, index) => body.map((cells) => cells[index] ?? "")));
  return body.map((cells) => one(cells[chosen])).filter(Boolean);
}

function fields(content) {
  const values = linesOf(content).map((line) => JSON.parse(line));
  const objects = values.filter((value) => value && typeof value === "object");
  const names = [...new Set(objects.flatMap(Object.keys))];
  const texts = names.map((name) => objects.map((value) => (typeof value[name] === "string" ? value[name] : "")));
  const chosen = TEXT_NAMES.find((name) => names.includes(name)) ?? names[longest(texts)];
  return values.map((value) => one(typeof value === "string" ? value : value?.[chosen])).filter(Boolean);
}

// The texts are shown one per line, so line breaks within a text become spaces.
function one(text) {
  return typeof text === "string" ? text.replace(/\s+/g, " ").trim() : "";
}

function longest(columns) {
  const sizes = columns.map((cells) => cells.reduce((sum, cell) => sum + cell.length, 0));
  return sizes.indexOf(Math.max(...sizes));
}
