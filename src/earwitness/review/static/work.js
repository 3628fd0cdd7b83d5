"use strict";
// Saving, undo and single keys, shared by the pages that ask something.
const Work = (() => {
  const form = document.getElementById("task");
  const status = document.getElementById("status");
  const csrf = document.querySelector('meta[name="csrf"]').content;
  const opened = performance.now();
  const keysOn = document.getElementById("keys-on");
  const RETRY_MS = 3000;
  let busy = false;

  const say = (text, css) => { status.textContent = text; status.className = "status " + (css || ""); };

  try { keysOn.checked = localStorage.getItem("keys") !== "off"; } catch { /* storage is off: keys are on */ }
  keysOn.addEventListener("change", () => {
    try { localStorage.setItem("keys", keysOn.checked ? "on" : "off"); } catch { /* for this page only */ }
  });

  const post = (address, body) => fetch(address, {
    method: "POST", credentials: "same-origin", body: JSON.stringify(body),
    headers: { "content-type": "application/json", "accept": "application/json", "x-csrf": csrf },
  });

  // An answer is shown as saved only when the server says so; until then it stays on the page and is sent again.
  const send = async (address, body) => {
    if (busy) return;
    busy = true;
    form.setAttribute("aria-busy", "true");
    say("Saving …");
    for (;;) {
      try {
        const response = await post(address, body);
        const told = await response.json();
        if (response.ok) { location.assign(told.next); return; }
        if (response.status === 429 || response.status >= 500) throw new Error(told.error);
        say(told.error, "bad");
        break;
      } catch (error) {
        const why = error instanceof TypeError ? "The server cannot be reached." : error.message;
        say("Not saved yet. " + why + " Your answer stays here and is sent again.", "bad");
        await new Promise((done) => setTimeout(done, RETRY_MS));
      }
    }
    busy = false;
    form.removeAttribute("aria-busy");
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const body = Object.fromEntries(new FormData(form));
    delete body.csrf;
    body.seconds = Math.round((performance.now() - opened) / 100) / 10;
    send(form.action, body);
  });
  const submit = () => form.requestSubmit(document.getElementById("save"));

  document.getElementById("undo-form").addEventListener("submit", (event) => {
    event.preventDefault();
    send("/work/undo", {});
  });

  const keys = new Map([
    ["u", () => document.getElementById("undo-form").requestSubmit()],
    ["l", () => location.assign(document.getElementById("later").href)],
    ["n", () => document.getElementById("note").focus()],
    ["Enter", submit],
  ]);

  document.addEventListener("keydown", (event) => {
    const at = event.target;
    if (at.id === "note") {
      if (event.key === "Escape") at.blur();
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat || !keysOn.checked) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const act = keys.get(key);
    if (!act) return;
    // Enter and space on a button, a link or a player mean that one; arrows on a radio button move within its group.
    const own = at.closest("button, a, summary, audio, input[type=checkbox]");
    if ((key === "Enter" || key === " ") && own) return;
    if (key.startsWith("Arrow") && (own || at.matches("input[type=radio]"))) return;
    event.preventDefault();
    act();
  });

  const player = document.getElementById("player");
  if (player) {
    keys.set(" ", () => { if (player.paused) player.play(); else player.pause(); });
    player.addEventListener("error", () => say("The sound cannot be played. Reload the page.", "bad"));
  }
  return { form, keys, player, say };
})();
