// What scripts add to the pages; everything works without them.

// Live progress: fetch the part of the page again and again, and replace it.
async function follow(part) {
  let next = part;
  try {
    const answer = await fetch(part.dataset.live, { redirect: "manual" });
    if (answer.type === "opaqueredirect") return; // the visit is over
    if (!answer.ok) throw new Error("no answer");
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(part.id);
    if (fresh.dataset.state !== part.dataset.state) {
      location.reload();
      return;
    }
    part.replaceWith(fresh);
    next = fresh;
  } catch {
    // No answer: try again.
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

// A form that takes long says so, and is not sent twice.
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
