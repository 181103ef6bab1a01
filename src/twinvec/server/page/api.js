// Requests to the server. The API key, if one is needed, stays in this tab's session storage.

const KEY = "twinvec-key";

export class ServerError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export function keepKey(key) {
  if (key) sessionStorage.setItem(KEY, key);
  else sessionStorage.removeItem(KEY);
}

export async function get(path) {
  return answered(await sent(path, { headers: headers() }));
}

export async function post(path, body, signal) {
  const content = JSON.stringify(body);
  return answered(await sent(path, { method: "POST", headers: headers("application/json"), body: content, signal }));
}

function headers(type) {
  const key = sessionStorage.getItem(KEY);
  return { ...(type && { "Content-Type": type }), ...(key && { Authorization: `Bearer ${key}` }) };
}

async function sent(path, options) {
  try {
    return await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError(0, "");
  }
}

async function answered(response) {
  const text = await response.text();
  let content = null;
  try {
    content = JSON.parse(text);
  } catch {
    // shown as text below
  }
  if (response.ok && content !== null) return content;
  throw new ServerError(response.status, messageOf(content) || text.slice(0, 300) || `HTTP ${response.status}`);
}

// Dialects word errors differently: {error: {message, hint}}, {error: text}, {message} or {detail}.
function messageOf(content) {
  const error = content?.error ?? content;
  if (typeof error === "string") return error;
  const message = error?.message ?? error?.detail;
  if (typeof message !== "string") return "";
  const hint = typeof error.hint === "string" && !message.includes(error.hint) ? ` ${error.hint}` : "";
  return message + hint;
}
