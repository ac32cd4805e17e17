// Shows queues and nodes, and sets their limits.
"use strict";

function cell(row, content) {
  const td = document.createElement("td");
  td.append(content === null || content === undefined ? "" : content);
  row.append(td);
}

function show(id, rows) {
  const body = document.getElementById(id);
  body.replaceChildren(...rows.map((cells) => {
    const tr = document.createElement("tr");
    cells.forEach((c) => cell(tr, c));
    return tr;
  }));
}

async function ask(path, options) {
  const response = await fetch(path, { headers: { Accept: "application/json", "Content-Type": "application/json" }, ...options });
  const answer = await response.json();
  document.getElementById("error").textContent = response.ok ? "" : path + ": " + JSON.stringify(answer.error);
  return answer;
}

// limit is a number that can be changed; nothing stands for null.
function limit(path, key, value, needed) {
  const input = document.createElement("input");
  input.type = "number";
  input.min = 0;
  input.value = value === null || value === undefined ? "" : value;
  input.addEventListener("change", async () => {
    if (input.value === "" && needed) {
      return;
    }
    await ask(path, { method: "POST", body: JSON.stringify({ [key]: input.value === "" ? null : Number(input.value) }) });
    load();
  });
  return input;
}

// counts returns the queues as Sluice counts them. Disbatch's route counts every task as queued that has neither run nor ended: those that
// wait for others, were cancelled or were lost, too.
async function counts() {
  const response = await fetch("/api/v1/queues", { headers: { Accept: "application/json" } });
  if (!response.ok) {
    return new Map();
  }
  const answer = await response.json();
  return new Map(answer.queues.map((q) => [q.id, q]));
}

async function load() {
  const queues = await ask("/queues");
  const nodes = await ask("/nodes");
  const ours = await counts();
  if (Array.isArray(queues)) {
    show("queues", queues.map((q) => [q.name, q.plugin, limit("/queues/" + q.id, "threads", q.threads, true), ours.get(q.id)?.queued ?? q.queued, ours.get(q.id)?.active ?? q.running, q.completed, q.id]));
  }
  if (Array.isArray(nodes)) {
    show("nodes", nodes.map((n) => [n.node, limit("/nodes/" + n.id, "maxthreads", n.maxthreads, false), new Date(n.timestamp).toLocaleString(), n.id]));
  }
}

document.addEventListener("DOMContentLoaded", () => {
  load();
  setInterval(() => {
    if (!document.hidden && document.activeElement.tagName !== "INPUT") {
      load();
    }
  }, 5000);
});
