// The console works without this. With it, figures renew themselves and changes come in as they are found.
"use strict";

const visible = () => document.visibilityState === "visible";

// Parts that are marked as live are replaced by what the same page says now.
async function renew() {
  const parts = document.querySelectorAll("[data-live]");
  if (!parts.length || !visible()) return;
  for (const part of parts) if (part.contains(document.activeElement) || part.querySelector("details[open]")) return;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, credentials: "same-origin" });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of parts) {
      const newer = page.getElementById(part.id);
      if (newer) part.replaceChildren(...newer.childNodes);
    }
  } catch { /* the runner stops or restarts: what is shown stays */ }
}
setInterval(renew, 5000);

// Changes as they come. All of it is set as text: addresses are strangers' words.
const WORDS = { new: "first copy", changed: "changed", gone: "gone" };
const KINDS = { new: "new", changed: "changed", gone: "bad" };

function row(change) {
  const line = document.createElement("tr");
  const cell = (kind, label) => {
    const made = line.insertCell();
    made.className = kind;
    if (label) made.dataset.label = label;
    return made;
  };
  const badge = document.createElement("span");
  badge.className = "badge " + (KINDS[change.change] || "");
  badge.textContent = WORDS[change.change] || change.change;
  cell("tight").append(badge);
  const link = document.createElement("a");
  link.href = "/page?url=" + encodeURIComponent(change.url);
  link.textContent = change.title || change.url;
  const about = cell("wide");
  about.append(link);
  if (change.title) {
    const under = document.createElement("span");
    under.className = "small under";
    under.textContent = change.url;
    about.append(" ", under);
  }
  const time = document.createElement("time");
  const when = new Date(change.time * 1000);
  time.dateTime = when.toISOString();
  time.title = time.dateTime;
  time.textContent = time.dateTime.slice(0, 19).replace("T", " ");
  cell("tight", "at").append(time);
  const differs = change.change === "changed";
  cell("tight num", differs && "differs by").textContent = differs ? (100 * change.significance).toFixed(1) + " %" : "";
  cell("tight num", "size").textContent = change.size ? size(change.size) : "–";
  const what = cell("tight");
  if (differs) {
    const there = document.createElement("a");
    there.href = link.href + "&to=" + change.number + "#difference";
    there.textContent = "difference";
    what.append(there);
  }
  line.classList.add("arrived");
  return line;
}

function size(bytes) {
  if (bytes < 1024) return bytes + " B";
  if (bytes < 1048576) return Number((bytes / 1024).toPrecision(3)) + " KiB";
  return Number((bytes / 1048576).toPrecision(3)) + " MiB";
}

const list = document.getElementById("changes");
if (list && list.dataset.stream && "EventSource" in window) {
  const state = document.getElementById("stream-state");
  const source = new EventSource(list.dataset.stream);
  source.onopen = () => { state.textContent = "live"; };
  source.onerror = () => {
    const ended = source.readyState === EventSource.CLOSED;  // it was refused, such as by a store that was begun anew
    state.textContent = ended ? "no longer live: load the page again" : "connecting again";
  };
  source.addEventListener("change", (event) => {
    list.prepend(row(JSON.parse(event.data)));
    while (list.rows.length > Number(list.dataset.most)) list.deleteRow(-1);
  });
  addEventListener("pagehide", () => source.close());
}

// "/" leads to the search field.
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) return;
  const field = document.querySelector(".find input");
  if (field) { event.preventDefault(); field.focus(); }
});
