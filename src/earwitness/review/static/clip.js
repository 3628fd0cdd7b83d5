"use strict";
(() => {
  const { form, keys, player } = Work;
  const pick = (name, place) => {
    const inputs = form.querySelectorAll(`input[name="${name}"]`);
    if (inputs[place]) inputs[place].checked = true;
  };
  const question = form.querySelector('input[name="match"]') ? "match" : "perceived_emotion";
  keys.set("g", () => pick("audio_quality", 0));
  keys.set("p", () => pick("audio_quality", 1));
  for (let place = 0; place < 7; place += 1) keys.set(String(place + 1), () => pick(question, place));
  keys.set("r", () => { player.currentTime = 0; player.play(); });
  // Where the browser does not let pages begin to play, the space bar does.
  player.play().catch(() => Work.say("Press play (or Space) to hear it."));
})();
