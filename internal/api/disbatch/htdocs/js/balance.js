// Sends the balance document as it stands in the form.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const result = document.getElementById("result");
  document.getElementById("balance").addEventListener("submit", async (event) => {
    event.preventDefault();
    const body = document.getElementById("document").value;
    const response = await fetch("/balance", { method: "POST", headers: { "Content-Type": "application/json" }, body });
    result.textContent = (await response.json()).status;
  });
});
