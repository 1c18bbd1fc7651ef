"use strict";
// Search, and folding all at once. The page is whole without this.
const bar = document.querySelector(".find"), input = bar.querySelector("input"), told = bar.querySelector("output");
const agents = [...document.querySelectorAll("details.agent")];
const rows = agents.map(agent => [...agent.querySelectorAll(".row")]);
const texts = rows.map(own => own.map(row => row.textContent.toLowerCase()));
const was = new Map(), unfolded = new Set();

function fold(open) {
  for (const agent of agents) agent.open = open;
}

function unfold(row, words) {
  for (const part of row.querySelectorAll("details:not([open])")) {
    const text = part.textContent.toLowerCase();
    if (words.some(word => text.includes(word))) {
      part.open = true;
      unfolded.add(part);
    }
  }
}

function find() {
  for (const part of unfolded) part.open = false;
  unfolded.clear();
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  agents.forEach((agent, i) => {
    let here = 0;
    rows[i].forEach((row, n) => {
      const fits = words.every(word => texts[i][n].includes(word));
      row.classList.toggle("away", !fits);
      here += fits;
      if (fits) unfold(row, words);
    });
    if (words.length && !was.has(agent)) was.set(agent, agent.open);
    agent.classList.toggle("away", words.length > 0 && here === 0);
    if (words.length) agent.open = here > 0;
    found += here;
  });
  if (!words.length) {
    was.forEach((open, agent) => { agent.open = open; });
    was.clear();
  }
  told.textContent = words.length ? `${found} found` : "";
}

function show() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (!target) return;
  for (let up = target; up; up = up.parentElement) {
    if (up.tagName === "DETAILS") up.open = true;
    up.classList.remove("away");
  }
  target.scrollIntoView();
}

let later = 0;
input.addEventListener("input", () => { clearTimeout(later); later = setTimeout(find, 120); });
bar.querySelector(".unfold").addEventListener("click", () => fold(true));
bar.querySelector(".fold").addEventListener("click", () => fold(false));
addEventListener("hashchange", show);
bar.hidden = false;
if (location.hash.startsWith("#find=")) {
  input.value = decodeURIComponent(location.hash.slice(6));
  find();
} else {
  show();
}
