"use strict";
(() => {
  const PAGE = 25;
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const make = (tag, css, text) => {
    const node = document.createElement(tag);
    if (css) node.className = css;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const text = (number) => (number < 0 ? null : data.texts[number]);
  const boardName = (board) => board.condition + (board.set ? " · " + board.set : "");

  const rows = [];
  const byClip = new Map();
  data.systems.forEach((system, s) => {
    system.kind.forEach((kind, i) => {
      const item = typeof system.item === "number" ? i : system.item[i];
      rows.push([s, i, item]);
      if (!byClip.has(item)) byClip.set(item, []);
      byClip.get(item).push([s, i, item]);
    });
  });
  rows.sort((a, b) => a[2] - b[2] || a[0] - b[0]);

  const fill = (id, entries) => {
    const select = byId(id);
    if (!select) return;
    for (const [value, words] of entries) {
      const option = make("option", "", words);
      option.value = value;
      select.append(option);
    }
  };
  const names = [...new Set(data.systems.map((system) => system.name))];
  fill("f-board", data.boards.map((board, i) => [String(i), boardName(board)]));
  fill("f-model", names.map((name, i) => [String(i), name]));
  fill("f-gold", data.labels.map((label, i) => [String(i), label]));
  fill("f-answer", [...data.labels.map((label, i) => [String(i), label]), ["-1", "no label"]]);
  fill("f-outcome", data.kinds.map((kind, i) => [String(i), kind]));

  let shown = rows;
  let page = 0;
  const value = (id) => (byId(id) ? byId(id).value : "");

  const chosen = () => {
    const board = value("f-board"), model = value("f-model"), right = value("f-right");
    const gold = value("f-gold"), answer = value("f-answer"), outcome = value("f-outcome");
    const words = value("f-text").trim().toLowerCase();
    const hits = words ? data.texts.map((entry) => entry.toLowerCase().includes(words)) : null;
    const has = (entry) => entry.toLowerCase().includes(words);
    return rows.filter(([s, i, item]) => {
      const system = data.systems[s];
      const label = system.label[i], truth = data.items.gold[item];
      if (board !== "" && system.board !== Number(board)) return false;
      if (model !== "" && system.name !== names[Number(model)]) return false;
      if (right === "right" && label !== truth) return false;
      if (right === "wrong" && label === truth) return false;
      if (gold !== "" && truth !== Number(gold)) return false;
      if (answer !== "" && label !== Number(answer)) return false;
      if (outcome !== "" && system.kind[i] !== Number(outcome)) return false;
      if (!words) return true;
      return (system.reply[i] >= 0 && hits[system.reply[i]]) || (system.note[i] >= 0 && hits[system.note[i]]) ||
        has(data.items.id[item]) || has(data.items.path[item]) || has(data.names[data.items.cluster[item]]);
    });
  };

  const answerOf = ([s, i]) => {
    const system = data.systems[s];
    return system.label[i] < 0 ? data.kinds[system.kind[i]] : data.labels[system.label[i]];
  };

  const draw = (row) => {
    const [s, i, item] = row;
    const system = data.systems[s];
    const board = data.boards[system.board];
    const gold = data.labels[data.items.gold[item]];
    const right = system.label[i] === data.items.gold[item];
    const line = make("li");
    const left = make("div");
    const verdict = make("p", "verdict");
    verdict.append(make("b", "", gold), " → ", make("b", "", answerOf(row)), right ? " ✓ right" : system.label[i] < 0 ? " ✗ no label" : " ✗ wrong");
    left.append(verdict, make("p", "", system.name));
    const where = [data.items.id[item], data.names[data.items.cluster[item]]];
    if (data.boards.length > 1) where.push(board.condition);
    left.append(make("p", "", where.filter(Boolean).join(" · ")));
    const sound = data.items.sound[item];
    if (board.condition !== "audio") {
      left.append(make("p", "", "sent as: " + board.condition));
    } else if (sound >= 0) {
      const player = make("audio");
      player.controls = true;
      player.preload = "none";
      player.src = data.sounds[sound];
      player.setAttribute("aria-label", "Clip " + data.items.id[item]);
      left.append(player);
    } else if (data.items.path[item]) {
      left.append(make("p", "", data.items.path[item]));
    }
    const side = make("div");
    const reply = text(system.reply[i]);
    if (reply === null) side.append(make("p", "", "no reply"));
    else side.append(make("pre", "", reply === "" ? "(empty)" : reply));
    const note = text(system.note[i]);
    const rule = data.names[system.rule[i]];
    const decided = data.kinds[system.kind[i]] + (rule ? " by " + rule : "") + (note ? " · " + note : "");
    side.append(make("p", "", decided));
    const mates = byClip.get(item).filter((other) => other[0] !== s);
    if (mates.length) {
      const more = make("details");
      more.append(make("summary", "", "Other answers to this clip: " + mates.length));
      more.addEventListener("toggle", () => {
        if (more.childElementCount > 1) return;
        const list = make("ul");
        for (const mate of mates) {
          const other = data.systems[mate[0]];
          const condition = data.boards.length > 1 ? " (" + data.boards[other.board].condition + ")" : "";
          list.append(make("li", "", other.name + condition + ": " + answerOf(mate)));
        }
        more.append(list);
      });
      side.append(more);
    }
    line.append(left, side);
    return line;
  };

  const show = () => {
    const pages = Math.max(1, Math.ceil(shown.length / PAGE));
    page = Math.min(Math.max(page, 0), pages - 1);
    byId("rows").replaceChildren(...shown.slice(page * PAGE, (page + 1) * PAGE).map(draw));
    document.querySelectorAll("#rows pre").forEach((box) => {
      if (box.scrollHeight <= box.clientHeight + 1) return;
      box.tabIndex = 0;
      box.setAttribute("role", "region");
      box.setAttribute("aria-label", "Whole reply");
    });
    byId("found").textContent = shown.length.toLocaleString("en") + " of " + rows.length.toLocaleString("en") + " replies";
    byId("page").textContent = "Page " + (page + 1).toLocaleString("en") + " of " + pages.toLocaleString("en");
    byId("previous").disabled = page === 0;
    byId("next").disabled = page >= pages - 1;
  };
  const refresh = () => { shown = chosen(); page = 0; show(); };
  let timer = 0;
  byId("filters").addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(refresh, 120); });
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("filters").addEventListener("reset", () => setTimeout(refresh, 0));
  byId("previous").addEventListener("click", () => { page -= 1; show(); byId("found").scrollIntoView({ block: "nearest" }); });
  byId("next").addEventListener("click", () => { page += 1; show(); byId("found").scrollIntoView({ block: "nearest" }); });
  window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((entry) => { entry.open = true; }));
  refresh();
})();
