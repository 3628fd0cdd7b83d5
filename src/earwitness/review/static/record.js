"use strict";
// Records PCM from an AudioWorklet, looks at it, lets the speaker hear it, and sends it as WAV.
(() => {
  const byId = (id) => document.getElementById(id);
  const OFF = ["echoCancellation", "noiseSuppression", "autoGainControl"];
  const WORDS = { echoCancellation: "echo cancellation", noiseSuppression: "noise suppression", autoGainControl: "automatic gain" };
  const FULL_SCALE = 32766 / 32768;
  const FULL_SCALE_RUN = 3;
  const LEAST_LEVEL_DB = -50;
  const WINDOW_S = 0.1;
  const keysOn = byId("keys-on");
  const player = new Audio();
  let state = "idle"; // idle, recording, recorded, sending
  let input = null; // { context, settings }
  let blocks = [];
  let samples = 0;
  let wav = null;

  try { keysOn.checked = localStorage.getItem("keys") !== "off"; } catch { /* storage is off: keys are on */ }
  keysOn.addEventListener("change", () => {
    try { localStorage.setItem("keys", keysOn.checked ? "on" : "off"); } catch { /* for this page only */ }
  });

  const say = (text, css) => { byId("status").textContent = text; byId("status").className = "status " + (css || ""); };
  const db = (power) => 10 * Math.log10(power + 1e-18);
  const setButton = (id, words) => { byId(id).firstChild.textContent = words + " "; };

  const draw = () => {
    const recording = state === "recording";
    byId("record").setAttribute("aria-pressed", String(recording));
    setButton("record", recording ? "Stop" : wav ? "Record again" : "Record");
    byId("record").disabled = state === "sending";
    byId("play").disabled = recording || !wav;
    byId("send").disabled = state !== "recorded" || !wav;
    byId("record").classList.toggle("primary", !(state === "recorded" && wav));
    byId("send").classList.toggle("primary", state === "recorded" && Boolean(wav));
  };

  const meter = (block) => {
    let power = 0;
    let peak = 0;
    for (const value of block) { power += value * value; peak = Math.max(peak, Math.abs(value)); }
    const level = db(power / block.length);
    byId("level").value = Math.max(0, Math.min(100, ((level + 60) / 60) * 100));
    byId("level-words").textContent = peak >= FULL_SCALE ? "too loud" : level < -50 ? "very quiet" : level < -38 ? "quiet" : "good";
  };

  const arrived = (block) => {
    meter(block);
    if (state !== "recording") return;
    blocks.push(block);
    samples += block.length;
    const seconds = samples / input.context.sampleRate;
    byId("clock").textContent = seconds.toFixed(1) + " s";
    if (seconds > Number(byId("take").dataset.max)) stop();
  };

  const open = async () => {
    if (input) return true;
    if (!navigator.mediaDevices || !window.AudioWorkletNode) {
      say("This browser gives no microphone here. It needs an address that begins with https, or this very machine.", "bad");
      return false;
    }
    let stream;
    try {
      stream = await navigator.mediaDevices.getUserMedia({
        audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: false, channelCount: 1 },
      });
    } catch (error) {
      const why = error.name === "NotAllowedError" ? "The microphone was not allowed. Allow it beside the address and try again."
        : error.name === "NotFoundError" ? "No microphone was found. Plug one in and try again." : error.message;
      say(why, "bad");
      return false;
    }
    const track = stream.getAudioTracks()[0];
    const settings = track.getSettings();
    const wrong = OFF.filter((name) => settings[name] !== false);
    byId("capture").textContent = OFF.map((name) => `${WORDS[name]}: ${settings[name] === false ? "off" : settings[name] === true ? "on" : "not known"}`).join("; ")
      + `; ${track.label || "microphone"}`;
    if (wrong.length) {
      track.stop();
      say(`This browser does not turn off ${wrong.map((name) => WORDS[name]).join(" and ")}, which changes the voice. Use another browser.`, "bad");
      return false;
    }
    const context = settings.sampleRate ? new AudioContext({ sampleRate: settings.sampleRate }) : new AudioContext();
    await context.audioWorklet.addModule("/static/pcm.js");
    const node = new AudioWorkletNode(context, "pcm", { channelCount: 1, channelCountMode: "explicit" });
    node.port.onmessage = (event) => arrived(event.data);
    const silent = context.createGain();
    silent.gain.value = 0;
    context.createMediaStreamSource(stream).connect(node).connect(silent).connect(context.destination);
    await context.resume();
    track.addEventListener("ended", () => { input = null; say("The microphone went away.", "bad"); if (state === "recording") stop(); });
    input = { context, settings };
    return true;
  };

  const start = async () => {
    player.pause();
    if (!await open()) return;
    blocks = [];
    samples = 0;
    wav = null;
    state = "recording";
    say("Recording. Speak now.");
    draw();
  };

  const look = (all, rate) => {
    const { min, max } = byId("take").dataset;
    const seconds = all.length / rate;
    if (seconds < Number(min)) return `It is too short: ${seconds.toFixed(1)} s of at least ${min} s. Speak the whole text.`;
    if (seconds > Number(max) + 0.2) return `It is too long: ${seconds.toFixed(1)} s of at most ${max} s. Start later and stop sooner.`;
    let run = 0;
    for (const value of all) {
      run = Math.abs(value) >= FULL_SCALE ? run + 1 : 0;
      if (run >= FULL_SCALE_RUN) return "It is too loud: the wave is cut off (clipping). Turn the microphone down or step back, and redo it.";
    }
    const window = Math.max(1, Math.floor(rate * WINDOW_S));
    let loudest = -Infinity;
    for (let at = 0; at < all.length; at += window) {
      let power = 0;
      const part = all.subarray(at, at + window);
      for (const value of part) power += value * value;
      loudest = Math.max(loudest, db(power / part.length));
    }
    if (loudest < LEAST_LEVEL_DB) return "Nothing can be heard: it is silent or far too quiet. Check that the right microphone is on, and redo it.";
    return "";
  };

  const encode = (all, rate) => {
    const view = new DataView(new ArrayBuffer(44 + all.length * 2));
    const text = (at, words) => [...words].forEach((letter, n) => view.setUint8(at + n, letter.charCodeAt(0)));
    text(0, "RIFF"); view.setUint32(4, 36 + all.length * 2, true); text(8, "WAVEfmt "); view.setUint32(16, 16, true);
    view.setUint16(20, 1, true); view.setUint16(22, 1, true); view.setUint32(24, rate, true); view.setUint32(28, rate * 2, true);
    view.setUint16(32, 2, true); view.setUint16(34, 16, true); text(36, "data"); view.setUint32(40, all.length * 2, true);
    for (let n = 0; n < all.length; n += 1) {
      view.setInt16(44 + n * 2, Math.max(-32768, Math.min(32767, Math.round(all[n] * 32768))), true);
    }
    return new Blob([view.buffer], { type: "audio/wav" });
  };

  const stop = () => {
    const rate = input ? input.context.sampleRate : 48000;
    let all = new Float32Array(samples);
    let at = 0;
    for (const block of blocks) { all.set(block, at); at += block.length; }
    all = all.subarray(0, Math.floor(Number(byId("take").dataset.max) * rate));
    state = "recorded";
    const refused = look(all, rate);
    wav = all.length ? encode(all, rate) : null;
    if (player.src) URL.revokeObjectURL(player.src);
    if (wav) player.src = URL.createObjectURL(wav);
    if (refused) { state = "idle"; say(refused, "bad"); } else say("Hear it, then send it or record again.", "good");
    draw();
    // Enter acts on what has the focus: with a take that may be sent, that is sending.
    if (!refused) byId("send").focus();
  };

  const next = async (address) => {
    const response = await fetch(address, { credentials: "same-origin" });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    if (!page.getElementById("take")) { location.assign(address); return; }
    // The page stays, and with it the microphone: browsers would ask for it again at every load.
    for (const id of ["asked", "asked-words", "script", "kept"]) byId(id).replaceWith(document.adoptNode(page.getElementById(id)));
    byId("take").dataset.send = page.getElementById("take").dataset.send;
    byId("later").href = page.getElementById("later").href;
    document.querySelector(".far").replaceWith(document.adoptNode(page.querySelector(".far")));
    document.title = page.title;
    history.pushState(null, "", address);
    wav = null;
    samples = 0;
    state = "idle";
    byId("clock").textContent = "0.0 s";
    draw();
    byId("record").focus();
  };
  window.addEventListener("popstate", () => location.reload());

  const send = async () => {
    if (state !== "recorded" || !wav) return;
    state = "sending";
    draw();
    say("Sending …");
    try {
      const response = await fetch(byId("take").dataset.send, {
        method: "POST", credentials: "same-origin", body: wav,
        headers: {
          "content-type": "audio/wav", "accept": "application/json",
          "x-csrf": document.querySelector('meta[name="csrf"]').content, "x-capture": JSON.stringify(input.settings, (name, value) => (/^(|echoCancellation|noiseSuppression|autoGainControl|sampleRate|channelCount)$/.test(name) ? value : undefined)),
        },
      });
      const told = await response.json();
      if (response.ok) { await next(told.next); say("Saved.", "good"); return; }
      say(told.error, "bad");
    } catch {
      say("Not sent: the server cannot be reached. The recording is still here; send it again.", "bad");
    }
    state = "recorded";
    draw();
  };

  byId("record").addEventListener("click", () => { if (state === "recording") stop(); else start(); });
  byId("play").addEventListener("click", () => { player.currentTime = 0; player.play(); });
  byId("send").addEventListener("click", send);
  const keys = { r: "record", p: "play", Enter: "send", l: "later" };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || !keysOn.checked) return;
    const id = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!id || (event.key === "Enter" && event.target.closest("button, a, summary"))) return;
    event.preventDefault();
    if (!byId(id).disabled) byId(id).click();
  });
  draw();
})();
