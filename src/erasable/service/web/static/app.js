// What scripts add to the pages; everything works without them.

// Live progress: the part of the page is asked for again and again, and replaced.
async function follow(part) {
  let next = part;
  try {
    const answer = await fetch(part.dataset.live, { redirect: "error" });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(part.id);
    if (fresh.dataset.state !== part.dataset.state) {
      location.reload();
      return;
    }
    part.replaceWith(fresh);
    next = fresh;
  } catch {
    // The service does not answer just now: ask again.
  }
  keepFollowing(next);
}

function keepFollowing(part) {
  setTimeout(() => (document.hidden ? keepFollowing(part) : follow(part)), Number(part.dataset.every));
}

// A button that copies a code.
function offerCopy(code) {
  if (!navigator.clipboard) return;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "plain";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "Copied";
  });
  code.after(" ", button);
}

function askFirst(form) {
  form.addEventListener("submit", (event) => {
    if (!confirm(form.dataset.confirm)) event.preventDefault();
  });
}

// What takes long says so, and is not sent twice.
function sayBusy(form) {
  form.addEventListener("submit", () => {
    const button = form.querySelector("button");
    const words = document.createElement("p");
    words.setAttribute("role", "status");
    form.append(words);
    words.textContent = form.dataset.busy;
    setTimeout(() => (button.disabled = true));
  });
}

document.querySelectorAll("[data-live]").forEach(keepFollowing);
document.querySelectorAll("[data-copy]").forEach(offerCopy);
document.querySelectorAll("form[data-confirm]").forEach(askFirst);
document.querySelectorAll("form[data-busy]").forEach(sayBusy);
