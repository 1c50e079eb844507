package events

// budgetsByType says that client-go gives the events of each type about an object a
// budget of their own, which it does since v1.32.
const budgetsByType = false
