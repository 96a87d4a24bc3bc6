/**
 * Text of strangers made fit to look at: what steers a display is shown instead of obeyed, and what is huge is cut.
 */

// Controls, bidirectional overrides and isolates, zero-width characters, line separators, tags: all that changes how the rest is read.
const STEERING =
  /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu
const LONE = /[\ud800-\udfff]/gu

/** The text with every steering character written out, e.g. `⟨U+202E⟩`. */
export function visible(text) {
  return String(text).replace(STEERING, written).replace(LONE, written)
}

function written(char) {
  return `⟨U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`
}

/** The text with a capital letter at its beginning. */
export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** At most `limit` characters, never half of one; cut text ends with `…`. */
export function clip(text, limit) {
  if (text.length <= limit) return text
  const end = isHigh(text.charCodeAt(limit - 1)) ? limit - 1 : limit
  return `${text.slice(0, end)}…`
}

/** Where to cut a text at or before `limit` without splitting a character. */
export function border(text, limit) {
  return limit < text.length && isHigh(text.charCodeAt(limit - 1)) ? limit - 1 : Math.min(limit, text.length)
}

function isHigh(code) {
  return code >= 0xd800 && code <= 0xdbff
}

/** A name (of a tool, an agent, a session) on one line. */
export function name(text, limit = 120) {
  return clip(visible(String(text)).replace(/[\t\n]/g, ' '), limit)
}

/** A JSON value on one line, for a preview. */
export function line(value, limit = 240) {
  return value === undefined ? '' : clip(visible(JSON.stringify(value)), limit)
}

/** A JSON value laid out for reading. */
export function pretty(value) {
  return visible(JSON.stringify(value, null, 2) ?? '')
}

const NUMBER = new Intl.NumberFormat('en')

/** 12345 → `12,345`. */
export function count(value) {
  return NUMBER.format(value)
}

/** `1 event`, `12,345 events`. */
export function many(value, one, more = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : more}`
}

const BYTES = ['bytes', 'kB', 'MB', 'GB']

/** A size for people; `length` counts characters, which is near enough. */
export function size(length) {
  let value = length
  let unit = 0
  while (value >= 1000 && unit < BYTES.length - 1) {
    value /= 1000
    unit += 1
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${BYTES[unit]}`
}
