/**
 * One session in a list.
 */

import { h, say } from "../dom.js";
import { sessionPlace } from "../router.js";
import { count, many, name } from "../text.js";
import { full, since } from "../time.js";

/** `{element, update(session), tick()}`. */
export function sessionRow(session) {
  let now = session;
  const active = h("span", { class: "cell" });
  const events = h("span", { class: "cell events" });
  const at = h("time", { class: "cell created" });
  const link = h("a", { class: "row-link", href: sessionPlace(session.session_id) }, h("span", { class: "row-name" }, name(session.session_id)));
  const element = h("li", { class: "row" }, h("span", { class: "cell main" }, link, h("span", { class: "row-id" }, name(session.initiator ?? ""))), active, events, at);

  function update(next) {
    now = next;
    const running = (next.active ?? []).length;
    say(active, running ? `${count(running)} active` : "");
    say(events, typeof next.sequence === "number" ? many(next.sequence, "event") : "");
    tick();
  }

  function tick() {
    const text = now.last_activity_at ?? now.created_at;
    if (!text) return;
    at.dateTime = text;
    at.title = full(text);
    say(at, since(text));
  }

  update(session);
  return { element, update, tick };
}
