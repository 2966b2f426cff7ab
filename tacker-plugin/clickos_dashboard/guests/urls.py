# SPDX-License-Identifier: Apache-2.0
"""Addresses of guests."""

from django.urls import path

from clickos_dashboard.guests import counters
from clickos_dashboard.guests import editor
from clickos_dashboard.guests import graph
from clickos_dashboard.guests import views

urlpatterns = [
    path('', views.IndexView.as_view(), name='index'),
    path('<uuid:server_id>/', views.DetailView.as_view(), name='detail'),
    path('<str:server_id>/handlers/<path:name>',
         views.HandlerView.as_view(), name='handler'),
    path('<uuid:server_id>/configuration', editor.EditorView.as_view(),
         name='configuration'),
    path('<str:server_id>/counters', counters.answer, name='counters'),
    path('<str:server_id>/graph', graph.picture, name='graph')]
