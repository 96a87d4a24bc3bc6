/**
 * JSON without rounding: numbers that JavaScript cannot hold keep their digits, in browsers that can (`JSON.rawJSON`).
 */

/** Parse a text; a number that would change becomes a raw one, which `JSON.stringify` writes as it was. */
export function parse(text) {
  return typeof JSON.rawJSON === 'function' ? JSON.parse(text, keep) : JSON.parse(text)
}

function keep(_key, value, context) {
  return typeof value === 'number' && context?.source !== undefined && String(value) !== context.source
    ? JSON.rawJSON(context.source)
    : value
}

/**
 * Read what somebody typed.
 *
 * @param {string} text
 * @returns {{value: any} | {error: string}}
 */
export function typed(text) {
  if (text.trim() === '') return { error: 'Write a JSON value here, e.g. true, 40 or "yes".' }
  try {
    return { value: parse(text) }
  } catch (error) {
    return { error: `This is not JSON: ${error.message}` }
  }
}
