/**
 * What a screen reader is told without being asked: few things, each once. The text of messages is not among them.
 */

const said = document.querySelector('#said')
let timer = 0

/** Say one sentence, politely. A later one within a moment takes its place. */
export function announce(text) {
  clearTimeout(timer)
  timer = setTimeout(() => {
    said.textContent = text
    timer = setTimeout(() => (said.textContent = ''), 8000)
  }, 120)
}
