"use strict";
(() => {
  const PER_PAGE = window.matchMedia("(max-width: 820px)").matches ? 6 : 12;
  const data = JSON.parse(document.getElementById("scene-data").textContent);
  const byId = (id) => document.getElementById(id);
  const make = (tag, css, text) => {
    const node = document.createElement(tag);
    if (css) node.className = css;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const SVG = "http://www.w3.org/2000/svg";
  const svg = (tag, attributes) => {
    const node = document.createElementNS(SVG, tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    return node;
  };
  const clock = (seconds) => {
    const tenths = Math.round(seconds * 10);
    const whole = Math.floor(tenths / 10);
    return Math.floor(whole / 60) + ":" + String(whole % 60).padStart(2, "0") + "." + (tenths % 10);
  };
  const short = (seconds) => Math.floor(Math.round(seconds) / 60) + ":" + String(Math.round(seconds) % 60).padStart(2, "0");
  const spoken = (seconds) => {
    const whole = Math.round(seconds);
    return (whole >= 60 ? Math.floor(whole / 60) + " min " : "") + (whole % 60) + " s";
  };
  const name = (number) => (number < 0 ? null : data.names[number]);
  const letter = (reaction) => reaction[0].toUpperCase();

  // --- what was answered, by question and by scene

  const itemsOf = data.scenes.map(() => []);
  data.items.scene.forEach((scene, item) => itemsOf[scene].push(item));
  const answersOf = data.items.scene.map(() => []);
  data.answers.forEach((answers, a) => answers.item.forEach((item, row) => answersOf[item].push([a, row])));
  const order = new Map(data.order.map((system, place) => [system, place]));
  const reactionOf = (item) => {
    const event = data.items.event[item];
    return event < 0 ? "" : data.scenes[data.items.scene[item]].events[event].reaction;
  };

  // --- filters

  const fill = (id, entries) => {
    const select = byId(id);
    if (!select) return;
    for (const [value, words] of entries) {
      const option = make("option", "", words);
      option.value = value;
      select.append(option);
    }
  };
  const used = (key, list) => list.map((words, i) => [String(i), words]).filter(([i]) => data.answers.some((answers) => answers[key] === Number(i)));
  fill("s-corpus", data.corpora.map((words, i) => [String(i), words]));
  fill("s-place", [...new Set(data.scenes.map((scene) => scene.place))].sort().map((words) => [words, words]));
  fill("s-reaction", data.reactions.map((words) => [words, words]));
  fill("s-task", used("task", data.tasks));
  fill("s-condition", used("condition", data.conditions));
  fill("s-model", data.order.map((system) => [String(system), data.systems[system]]));
  const value = (id) => (byId(id) ? byId(id).value : "");

  const filters = () => ({
    corpus: value("s-corpus"), place: value("s-place"), reaction: value("s-reaction"), task: value("s-task"),
    condition: value("s-condition"), model: value("s-model"), result: value("s-result"), words: value("s-text").trim().toLowerCase(),
  });

  const fits = (f, item, a, row) => {
    const answers = data.answers[a];
    if (f.task !== "" && answers.task !== Number(f.task)) return false;
    if (f.condition !== "" && answers.condition !== Number(f.condition)) return false;
    if (f.model !== "" && answers.system !== Number(f.model)) return false;
    if (f.result === "wrong" && answers.right[row]) return false;
    if (f.result === "right" && !answers.right[row]) return false;
    return f.reaction === "" || reactionOf(item) === f.reaction;
  };

  const search = () => {
    const f = filters();
    const asking = f.task !== "" || f.condition !== "" || f.model !== "" || f.result !== "";
    const replies = f.words ? data.texts.map((text) => text.toLowerCase().includes(f.words)) : null;
    const has = (text) => text.toLowerCase().includes(f.words);
    const found = [];
    data.scenes.forEach((scene, s) => {
      if (f.corpus !== "" && scene.corpus !== Number(f.corpus)) return;
      if (f.place !== "" && scene.place !== f.place) return;
      if (f.reaction !== "" && scene.events.length && !scene.events.some((event) => event.reaction === f.reaction)) return;
      const told = !f.words || has(scene.id) || has(scene.topic) || scene.turns.some((turn) => has(turn[3])) || scene.events.some((event) => has(event.sound));
      let hits = 0;
      if (asking || (f.words && !told)) {
        for (const item of itemsOf[s]) {
          for (const [a, row] of answersOf[item]) {
            if (!fits(f, item, a, row)) continue;
            const reply = data.answers[a].reply[row];
            if (told || (reply >= 0 && replies[reply])) hits += 1;
          }
        }
        if (!hits) return;
      }
      if (!told && !hits) return;
      found.push([s, hits]);
    });
    if (value("s-order") === "hits") found.sort((a, b) => b[1] - a[1] || a[0] - b[0]);
    return found;
  };

  // --- the list

  let shown = [];
  let page = 0;
  let current = -1;

  const entry = ([s, hits]) => {
    const scene = data.scenes[s];
    const line = make("li");
    const button = make("button", "scene-entry");
    button.type = "button";
    if (s === current) button.setAttribute("aria-current", "true");
    button.append(make("span", "scene-id", scene.id));
    const words = [scene.place];
    if (scene.seconds) words.push(short(scene.seconds));
    button.append(make("span", "scene-words", words.filter(Boolean).join(" · ")));
    const chips = make("span", "chips");
    for (const event of scene.events) {
      const mark = make("span", "mark r-" + event.reaction, letter(event.reaction));
      mark.title = event.sound + ": " + event.reaction;
      chips.append(mark);
    }
    if (scene.events.length) {
      chips.setAttribute("role", "img");
      chips.setAttribute("aria-label", scene.events.map((event) => event.reaction).join(", "));
      button.append(chips);
    }
    if (hits) button.append(make("span", "scene-hits", hits.toLocaleString("en") + (hits === 1 ? " answer" : " answers")));
    button.addEventListener("click", () => { open(s); byId("s-scene").scrollIntoView({ block: "nearest" }); });
    line.append(button);
    return line;
  };

  const list = () => {
    const pages = Math.max(1, Math.ceil(shown.length / PER_PAGE));
    page = Math.min(Math.max(page, 0), pages - 1);
    byId("s-list").replaceChildren(...shown.slice(page * PER_PAGE, (page + 1) * PER_PAGE).map(entry));
    byId("s-found").textContent = shown.length.toLocaleString("en") + " of " + data.scenes.length.toLocaleString("en") + " scenes";
    byId("s-page").textContent = (page + 1).toLocaleString("en") + " / " + pages.toLocaleString("en");
    byId("s-previous").disabled = page === 0;
    byId("s-next").disabled = page >= pages - 1;
  };

  // --- one scene

  let player = null;
  let position = 0;
  let moved = () => {};

  const wave = (scene) => {
    const bytes = scene.outline ? Uint8Array.from(atob(scene.outline), (c) => c.charCodeAt(0)) : new Uint8Array(0);
    const picture = svg("svg", { viewBox: "0 0 " + Math.max(bytes.length, 1) + " 100", preserveAspectRatio: "none", class: "wave", "aria-hidden": "true", focusable: "false" });
    if (!bytes.length) return picture;
    const top = Math.max(8, ...bytes);
    const height = (byte) => Math.max(0.7, (48 * byte) / top);
    let path = "M0,50";
    bytes.forEach((byte, x) => { path += "L" + x + "," + (50 - height(byte)).toFixed(1) + "L" + (x + 1) + "," + (50 - height(byte)).toFixed(1); });
    for (let x = bytes.length - 1; x >= 0; x -= 1) path += "L" + (x + 1) + "," + (50 + height(bytes[x])).toFixed(1) + "L" + x + "," + (50 + height(bytes[x])).toFixed(1);
    picture.append(svg("path", { d: path + "Z" }));
    return picture;
  };

  const place = (node, scene, start, end) => {
    node.style.left = (100 * start) / scene.seconds + "%";
    node.style.width = (100 * Math.max(end - start, 0)) / scene.seconds + "%";
    return node;
  };

  const seek = (scene, seconds, play) => {
    position = Math.min(Math.max(seconds, 0), scene.seconds);
    if (player) {
      player.currentTime = position;
      if (play) player.play().catch(() => {});
    }
    moved();
  };

  const timeline = (scene) => {
    const box = make("div", "timeline");
    box.id = "s-timeline";
    box.tabIndex = 0;
    box.setAttribute("role", "slider");
    box.setAttribute("aria-label", "Position in the scene");
    box.setAttribute("aria-valuemin", "0");
    box.setAttribute("aria-valuemax", scene.seconds.toFixed(1));
    const strip = make("div", "strip");
    for (const event of scene.events) strip.append(place(make("span", "band r-" + event.reaction), scene, event.start, event.end));
    strip.append(wave(scene));
    const sounds = make("div", "lane sounds");
    for (const event of scene.events) {
      const block = place(make("span", "sound r-" + event.reaction), scene, event.start, event.end);
      block.append(make("b", "", letter(event.reaction)));
      block.append(make("span", "sound-name", event.sound));
      if (event.start > 0.66 * scene.seconds) block.classList.add("late");
      sounds.append(block);
    }
    const lanes = ["A", "B"].map((speaker) => {
      const lane = make("div", "lane voice-" + speaker);
      lane.append(make("span", "lane-name", speaker));
      for (const turn of scene.turns) if (turn[0] === speaker) lane.append(place(make("span", "turn"), scene, turn[1], turn[2]));
      return lane;
    });
    const ruler = make("div", "ruler");
    const step = scene.seconds > 75 ? 30 : 10;
    for (let t = 0; t < scene.seconds - step / 3; t += step) ruler.append(place(make("span", "", short(t)), scene, t, t));
    const head = make("div", "playhead");
    const track = make("div", "track");
    track.append(sounds, strip, ...lanes, ruler, head);
    box.append(track);
    const at = (event) => {
      const frame = track.getBoundingClientRect();
      return ((event.clientX - frame.left) / frame.width) * scene.seconds;
    };
    let dragging = false;
    box.addEventListener("pointerdown", (event) => { dragging = true; box.setPointerCapture(event.pointerId); seek(scene, at(event), false); });
    box.addEventListener("pointermove", (event) => { if (dragging) seek(scene, at(event), false); });
    box.addEventListener("pointerup", (event) => { if (dragging) { dragging = false; seek(scene, at(event), true); } });
    box.addEventListener("pointercancel", () => { dragging = false; });
    box.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: 10, PageDown: -10 };
      if (event.key in steps) seek(scene, position + steps[event.key] * (event.shiftKey ? 5 : 1), false);
      else if (event.key === "Home") seek(scene, 0, false);
      else if (event.key === "End") seek(scene, scene.seconds, false);
      else if ((event.key === " " || event.key === "Enter") && player) { if (player.paused) player.play().catch(() => {}); else player.pause(); }
      else return;
      event.preventDefault();
    });
    return [box, head];
  };

  const sounding = (scene) => {
    const box = make("div", "player");
    if (!scene.sounds.length) {
      player = null;
      box.append(make("p", "muted no-sound", byId("s-scene").dataset.silent));
      return box;
    }
    player = make("audio");
    player.controls = true;
    player.preload = "metadata";
    player.src = scene.sounds[0][1];
    player.setAttribute("aria-label", "Recording of " + scene.id);
    box.append(player);
    if (scene.sounds.length > 1) {
      const wrap = make("div", "versions");
      const label = make("label", "", "Version");
      label.htmlFor = "s-version";
      const select = make("select");
      select.id = "s-version";
      scene.sounds.forEach(([variant], i) => {
        const option = make("option", "", versionName(scene, variant));
        option.value = String(i);
        select.append(option);
      });
      select.addEventListener("change", () => {
        const playing = !player.paused;
        const then = position;
        player.src = scene.sounds[Number(select.value)][1];
        player.currentTime = then;
        if (playing) player.play().catch(() => {});
      });
      wrap.append(label, select);
      box.append(wrap);
    }
    player.addEventListener("timeupdate", () => { position = player.currentTime; moved(); });
    player.addEventListener("error", () => {
      if (!box.querySelector(".trouble")) box.append(make("p", "trouble", "The sound cannot be loaded: " + decodeURI(scene.sounds[0][1]).slice(0, 200)));
    });
    return box;
  };

  const versionName = (scene, variant) => {
    const named = (id) => (scene.events.find((event) => event.id === id) || { sound: id }).sound;
    if (variant === "audible") return "the scene as it is";
    if (variant === "mute-all") return "without any sound";
    if (variant === "speech-only") return "the voices alone";
    if (variant.startsWith("mute-")) return "without " + named(variant.slice(5)) + " (" + variant.slice(5) + ")";
    if (variant.startsWith("swap-")) return "another sound for " + named(variant.slice(5)) + " (" + variant.slice(5) + ")";
    return variant;
  };

  const playFrom = (scene, seconds, words) => {
    const button = make("button", "time");
    button.type = "button";
    if (player) {
      const sign = make("span", "sign", "▶");
      sign.setAttribute("aria-hidden", "true");
      button.append(sign);
    }
    button.append(clock(seconds));
    button.setAttribute("aria-label", (player ? "Play from " : "Go to ") + spoken(seconds) + (words ? ", " + words : ""));
    button.addEventListener("click", () => seek(scene, seconds, true));
    return button;
  };

  const chip = (reaction) => {
    const mark = make("span", "reaction");
    mark.append(make("span", "mark r-" + reaction, letter(reaction)), " " + reaction);
    return mark;
  };

  const soundTable = (scene) => {
    const wrap = make("div", "scroll");
    wrap.tabIndex = 0;
    wrap.setAttribute("role", "region");
    wrap.setAttribute("aria-label", "Sounds of " + scene.id);
    const table = make("table", "sounds-table");
    const caption = make("caption");
    caption.append(make("span", "", scene.events.length === 1 ? "The sound of this scene" : "The sounds of this scene"));
    const head = make("thead");
    const line = make("tr");
    for (const words of ["Sound", "Loudest at", "From before it", "Reaction", "Register", "Over the ambience", "Level"]) {
      const cell = make("th", "", words);
      cell.scope = "col";
      line.append(cell);
    }
    head.append(line);
    const body = make("tbody");
    for (const event of scene.events) {
      const row = make("tr");
      const first = make("th", "", event.sound);
      first.scope = "row";
      const before = make("td");
      before.append(playFrom(scene, Math.max(event.start - 3, 0), "before " + event.sound));
      const how = make("td");
      how.append(chip(event.reaction));
      row.append(first, make("td", "", clock(event.at)), before, how, make("td", "", event.register || "–"), make("td", "", event.margin === null ? "–" : event.margin + " dB"), make("td", "", event.level));
      body.append(row);
    }
    table.append(caption, head, body);
    wrap.append(table);
    return wrap;
  };

  const transcript = (scene) => {
    const rows = [...scene.turns.map((turn) => ["turn", turn[1], turn[2], turn]), ...scene.events.map((event) => ["event", event.start, event.end, event])].sort((a, b) => a[1] - b[1]);
    const words = make("ol", "transcript");
    for (const [kind, start, end, what] of rows) {
      const line = make("li", kind);
      line.dataset.start = String(start);
      line.dataset.end = String(end);
      line.append(playFrom(scene, start, ""));
      const said = make("span", "said");
      if (kind === "turn") said.append(make("b", "", what[0]), " " + what[3]);
      else said.append("sound: " + what.sound + " ", chip(what.reaction));
      line.append(said);
      words.append(line);
    }
    const more = make("details", "words");
    more.open = data.answers.length === 0;
    more.append(make("summary", "", "What is said: " + scene.turns.length + " turns"), words);
    return more;
  };

  const heading = (scene, item) => {
    const event = data.items.event[item] < 0 ? null : scene.events[data.items.event[item]];
    const task = data.tasks[data.items.task[item]];
    const what = name(data.items.what[item]);
    const words = [task];
    if (event) words.push(event.sound + " at " + clock(event.at));
    if (what) words.push({ present: "in the recording", absent: "in its twin without the sound" }[what] || what);
    const title = make("h4", "question", words.join(" · "));
    const gold = name(data.items.gold[item]);
    if (gold) title.append(" ", make("span", "gold", "truth: " + gold));
    return title;
  };

  const cellText = (answers, row) => {
    const label = name(answers.label[row]);
    const mark = answers.right[row] ? "✓ " : label === null ? "– " : "✗ ";
    return mark + (label === null ? data.kinds[answers.kind[row]] : label);
  };

  const showReply = (box, answers, row) => {
    const reply = answers.reply[row] < 0 ? null : data.texts[answers.reply[row]];
    const rule = name(answers.rule[row]);
    const note = answers.note[row] < 0 ? "" : data.texts[answers.note[row]];
    const title = make("p", "reply-title", data.systems[answers.system] + " · " + data.conditions[answers.condition] + " · " + data.kinds[answers.kind[row]] + (rule ? " by " + rule : "") + (note ? " · " + note : ""));
    const body = reply === null ? make("p", "muted", "no reply") : make("pre", "", reply === "" ? "(empty)" : reply);
    box.replaceChildren(title, body);
    if (body.scrollHeight > body.clientHeight + 1 && body.tagName === "PRE") {
      body.tabIndex = 0;
      body.setAttribute("role", "region");
      body.setAttribute("aria-label", "Whole reply");
    }
  };

  let questions = 0;
  const question = (scene, item, f) => {
    const answers = answersOf[item].filter(([a, row]) => fits(f, item, a, row));
    if (!answers.length) return null;
    const box = make("div", "question-box");
    box.append(heading(scene, item));
    const options = data.items.options[item];
    if (options.length) box.append(make("p", "options", options.map((option, i) => "ABCD"[i] + ") " + name(option)).join("   ")));
    const conditions = [...new Set(answers.map(([a]) => data.answers[a].condition))].sort((a, b) => a - b);
    const systems = [...new Set(answers.map(([a]) => data.answers[a].system))].sort((a, b) => order.get(a) - order.get(b));
    const cells = new Map(answers.map(([a, row]) => [data.answers[a].system + " " + data.answers[a].condition, [a, row]]));
    questions += 1;
    const wrap = make("div", "scroll");
    wrap.tabIndex = 0;
    wrap.setAttribute("role", "region");
    wrap.setAttribute("aria-label", "Answers " + questions + ": " + box.firstChild.textContent);
    const table = make("table", "answers");
    const head = make("thead");
    const line = make("tr");
    for (const words of ["Model", ...conditions.map((condition) => data.conditions[condition])]) {
      const cell = make("th", "", words);
      cell.scope = "col";
      line.append(cell);
    }
    head.append(line);
    const body = make("tbody");
    const reply = make("div", "reply-box");
    reply.setAttribute("aria-live", "polite");
    for (const system of systems) {
      const row = make("tr");
      const first = make("th", "", data.systems[system]);
      first.scope = "row";
      row.append(first);
      for (const condition of conditions) {
        const cell = make("td");
        const found = cells.get(system + " " + condition);
        if (found) {
          const [a, at] = found;
          const said = data.answers[a];
          const button = make("button", "answer " + (said.right[at] ? "is-right" : "is-wrong"), cellText(said, at));
          button.type = "button";
          button.title = "Show the reply";
          button.addEventListener("click", () => {
            table.querySelectorAll("[aria-pressed]").forEach((other) => other.removeAttribute("aria-pressed"));
            button.setAttribute("aria-pressed", "true");
            showReply(reply, said, at);
          });
          cell.append(button);
        }
        row.append(cell);
      }
      body.append(row);
    }
    const caption = make("caption", "hidden", box.firstChild.textContent);
    table.append(caption, head, body);
    wrap.append(table);
    box.append(wrap, reply);
    return box;
  };

  const open = (s) => {
    if (player) player.pause();
    current = s;
    position = 0;
    questions = 0;
    const scene = data.scenes[s];
    const box = byId("s-scene");
    const title = make("h3", "", scene.id);
    title.id = "s-title";
    const facts = [scene.place];
    if (scene.seconds) facts.push(short(scene.seconds));
    if (scene.split) facts.push(scene.split);
    if (data.corpora.length > 1) facts.push(data.corpora[scene.corpus]);
    const parts = [title, make("p", "facts", facts.filter(Boolean).join(" · "))];
    if (scene.topic) parts.push(make("p", "topic", scene.topic));
    if (scene.seconds) {
      const [line, head] = timeline(scene);
      const time = make("p", "clock");
      parts.push(line, time, sounding(scene));
      const words = transcript(scene);
      if (scene.events.length) parts.push(soundTable(scene));
      else parts.push(make("p", "muted", "This scene has no sound but its ambience."));
      parts.push(words);
      const lines = [...words.querySelectorAll("li")];
      moved = () => {
        head.style.left = (100 * position) / scene.seconds + "%";
        line.setAttribute("aria-valuenow", position.toFixed(1));
        line.setAttribute("aria-valuetext", spoken(position) + " of " + spoken(scene.seconds));
        time.textContent = clock(position) + " of " + clock(scene.seconds);
        for (const each of lines) each.classList.toggle("now", position >= Number(each.dataset.start) && position < Number(each.dataset.end));
      };
      moved();
    } else {
      player = null;
      moved = () => {};
      parts.push(make("p", "muted", "The corpus of these runs was not found when this page was made, so the scene's timeline is not known here."));
    }
    if (data.answers.length) {
      const f = filters();
      const asked = itemsOf[s].map((item) => question(scene, item, f)).filter(Boolean);
      parts.push(make("h4", "answers-title", "What was answered: " + asked.length + (asked.length === 1 ? " question" : " questions")));
      if (asked.length) parts.push(make("p", "muted", "✓ right, ✗ wrong, – no label. Press an answer to read the whole reply."));
      parts.push(...asked);
    }
    box.replaceChildren(...parts);
    byId("s-list").querySelectorAll("[aria-current]").forEach((node) => node.removeAttribute("aria-current"));
    const at = shown.findIndex(([each]) => each === s);
    const button = byId("s-list").children[at - page * PER_PAGE];
    if (button) button.firstChild.setAttribute("aria-current", "true");
  };

  const refresh = () => {
    shown = search();
    page = 0;
    const at = shown.findIndex(([s]) => s === current);
    if (at >= 0) page = Math.floor(at / PER_PAGE);
    list();
    if (!shown.length) {
      if (player) player.pause();
      player = null;
      current = -1;
      byId("s-scene").replaceChildren(make("h3", "", "No scene fits"), make("p", "muted", "Choose other filters."));
      byId("s-scene").firstChild.id = "s-title";
    } else open(at >= 0 ? current : shown[0][0]);
  };
  let timer = 0;
  byId("s-filters").addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(refresh, 120); });
  byId("s-filters").addEventListener("submit", (event) => event.preventDefault());
  byId("s-filters").addEventListener("reset", () => setTimeout(refresh, 0));
  const turn = (by) => { page += by; list(); };
  byId("s-previous").addEventListener("click", () => turn(-1));
  byId("s-next").addEventListener("click", () => turn(1));
  refresh();
})();
