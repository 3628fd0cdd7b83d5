"use strict";
(() => {
  const { form, keys, player } = Work;
  const sounds = [...form.querySelectorAll(".sound")];
  const meanings = document.getElementById("meanings");
  const LEAD_S = 4;
  let current = 0;

  if (matchMedia("(max-width: 900px)").matches) meanings.open = false;

  const open = (sound) => !sound.querySelector("input:checked");
  const show = (number, scroll) => {
    current = Math.max(0, Math.min(sounds.length - 1, number));
    sounds.forEach((sound, n) => {
      sound.classList.toggle("current", n === current);
      if (n === current) sound.setAttribute("aria-current", "true"); else sound.removeAttribute("aria-current");
    });
    if (scroll) sounds[current].scrollIntoView({ block: "center" });
  };
  const onward = () => {
    const next = sounds.findIndex((sound, n) => n > current && open(sound));
    const first = sounds.findIndex(open);
    if (next >= 0 || first >= 0) show(next >= 0 ? next : first, true);
    else Work.say("All answered. Press Enter to save.", "good");
  };
  const choose = (place) => {
    const input = sounds[current].querySelectorAll("input[type=radio]")[place];
    input.checked = true;
    onward();
  };
  for (let place = 0; place < 4; place += 1) keys.set(String(place + 1), () => choose(place));
  keys.set("ArrowDown", () => show(current + 1, true));
  keys.set("ArrowUp", () => show(current - 1, true));
  const hear = (button) => {
    player.currentTime = Math.max(0, Number(button.dataset.at) - LEAD_S);
    player.play();
  };
  if (player) {
    keys.set("h", () => hear(sounds[current].querySelector(".jump")));
    for (const button of form.querySelectorAll(".jump")) button.addEventListener("click", () => hear(button));
  }
  sounds.forEach((sound, n) => sound.addEventListener("focusin", () => show(n, false)));
  show(Math.max(0, sounds.findIndex(open)), false);
})();
